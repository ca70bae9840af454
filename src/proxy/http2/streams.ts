/** RFC 9113 §5.1. Only clients open streams, since push is disabled. */

import { SidecarError } from '../../platform/errors.ts';
import type { FaultReason } from './errors.ts';
import { ReceiveWindow, SendWindow } from './flow-control.ts';
import { MAX_31_BITS } from './frames.ts';
import type { Role } from './settings.ts';

/** Open or half-closed. */
export interface Stream {
  readonly id: number;
  state: StreamState;
  readonly sendWindow: SendWindow;
  readonly receiveWindow: ReceiveWindow;
}

interface WindowSizes {
  /** From this side's SETTINGS. */
  readonly receiveBytes: number;
  /** From the peer's SETTINGS now. */
  readonly sendBytes: number;
}

type NotOpened = Extract<FaultReason, 'too_many_streams' | 'going_away'>;

export class Streams<S extends Stream = Stream> {
  readonly #role: Role;
  readonly #open = new OpenStreams<S>();
  readonly #closed = new ClosedStreams();
  #highestId = 0;
  #lastId = MAX_31_BITS;
  /** GOAWAY ends it, whatever identifier it names (§6.8). */
  #opensNoMore = false;

  constructor(role: Role) {
    this.#role = role;
  }

  /** As SETTINGS_MAX_CONCURRENT_STREAMS counts. */
  get size(): number {
    return this.#open.size;
  }

  /** 0 before any was used. */
  get highestId(): number {
    return this.#highestId;
  }

  /** What GOAWAY may name: later ones may only name a lower one (§6.8). */
  get lastProcessedId(): number {
    return Math.min(this.#highestId, this.#lastId);
  }

  [Symbol.iterator](): IterableIterator<S> {
    return this.#open[Symbol.iterator]();
  }

  get(streamId: number): S | undefined {
    return this.#open.get(streamId);
  }

  stateOf(streamId: number): StreamState {
    const stream = this.#open.get(streamId);
    if (stream !== undefined) return stream.state;
    if (streamId > this.#highestId || streamId % 2 === 0) return IDLE;
    const state = this.#closed.stateOf(streamId);
    // This side opened it: what still comes crossed with its end.
    return this.#role === 'client' && state.kind === 'closed' && state.ending === 'forgotten'
      ? RESET_SENT
      : state;
  }

  /** Moves an open stream. After HEADERS for a new one call `open` or `refuse`. */
  receive(streamId: number, frame: StreamFrame, endStream: boolean): Verdict {
    const stream = this.#open.get(streamId);
    if (stream === undefined) return this.#receiveElsewhere(streamId, frame, endStream);
    const verdict = received(stream.state, frame, endStream);
    if (verdict.kind === 'next') this.move(stream, verdict.state);
    return verdict;
  }

  #receiveElsewhere(streamId: number, frame: StreamFrame, endStream: boolean): Verdict {
    const state = this.stateOf(streamId);
    if (state === IDLE && frame === 'headers') {
      if (streamId % 2 === 0) return { kind: 'connection', reason: 'stream_id_invalid' };
      if (this.#role === 'client') return { kind: 'connection', reason: 'stream_idle' };
    }
    return received(state, frame, endStream);
  }

  refusalOf(streamId: number, maxConcurrent: number): NotOpened | undefined {
    if (streamId > this.#lastId) return 'going_away';
    return this.#open.size >= maxConcurrent ? 'too_many_streams' : undefined;
  }

  /** The stream is in the state that its HEADERS led to. */
  open(stream: S): S {
    this.#highestId = stream.id;
    this.#open.add(stream);
    return stream;
  }

  /** Remembers a stream that is reset instead of opened. */
  refuse(streamId: number): void {
    this.#highestId = Math.max(this.#highestId, streamId);
    this.#closed.add(streamId, RESET_SENT);
  }

  /** A client's; undefined after GOAWAY, and if none is left (§5.1.1). */
  nextId(): number | undefined {
    if (this.#opensNoMore) return undefined;
    const id = this.#highestId === 0 ? 1 : this.#highestId + 2;
    return id <= MAX_31_BITS ? id : undefined;
  }

  /** Open streams go on. */
  openNoMore(): void {
    this.#opensNoMore = true;
  }

  /** Moves the stream by a frame that this side sends. */
  send(stream: S, frame: StreamFrame, endStream: boolean): void {
    this.move(stream, this.after(stream, frame, endStream));
  }

  /**
   * The state after a frame of this side; call `move` once it is written.
   * @throws {SidecarError} `internal` if it must not be sent.
   */
  after(stream: S, frame: StreamFrame, endStream: boolean): StreamState {
    const state = sent(stream.state, frame, endStream);
    if (state === undefined) {
      throw new SidecarError(
        'internal',
        `A ${frame} frame was to be sent on a stream that is ${stream.state.kind}`,
      );
    }
    return state;
  }

  /** After GOAWAY, drops and returns open streams above `lastId`. */
  limitTo(lastId: number): S[] {
    this.#lastId = Math.min(this.#lastId, lastId);
    this.openNoMore();
    const beyond = [...this.#open].filter(({ id }) => id > lastId);
    for (const stream of beyond) this.move(stream, RESET_SENT);
    return beyond;
  }

  /** §6.9.2. False if a window became too large. */
  adjustSendWindows(bytes: number): boolean {
    let fits = true;
    for (const { sendWindow } of this.#open) fits = sendWindow.grow(bytes) && fits;
    return fits;
  }

  move(stream: S, state: StreamState): void {
    stream.state = state;
    if (state.kind !== 'closed') return;
    this.#open.delete(stream.id);
    this.#closed.add(stream.id, state);
  }
}

export function newWindows(sizes: WindowSizes): Pick<Stream, 'sendWindow' | 'receiveWindow'> {
  return {
    sendWindow: new SendWindow(sizes.sendBytes),
    receiveWindow: new ReceiveWindow(sizes.receiveBytes),
  };
}

const FIRST_PLACES = 16;

/** Why it is no `Map`: see `../io/collections.ts`. */
export class OpenStreams<S extends { readonly id: number }> implements Iterable<S> {
  /** Each stands at its place, or the first free one after it; at most half are taken. */
  #places: (S | undefined)[] = new Array(FIRST_PLACES).fill(undefined);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(id: number): S | undefined {
    return this.#places[this.#find(id)];
  }

  /** @param stream with a new identifier. */
  add(stream: S): void {
    this.#size++;
    if (this.#size * 2 > this.#places.length) {
      const streams = [...this];
      this.#places = new Array(this.#places.length * 2).fill(undefined);
      for (const each of streams) this.#places[this.#find(each.id)] = each;
    }
    this.#places[this.#find(stream.id)] = stream;
  }

  delete(id: number): void {
    let free = this.#find(id);
    if (this.#places[free] === undefined) return;
    this.#size--;
    // So that each is found before the first free place.
    for (let at = this.#after(free); ; at = this.#after(at)) {
      const stream = this.#places[at];
      if (stream === undefined) break;
      if (this.#distance(this.#placeOf(stream.id), at) < this.#distance(free, at)) continue;
      this.#places[free] = stream;
      free = at;
    }
    this.#places[free] = undefined;
  }

  /** Oldest first. */
  [Symbol.iterator](): IterableIterator<S> {
    const streams = this.#places.filter((stream) => stream !== undefined);
    return streams.sort((a, b) => a.id - b.id).values();
  }

  /** Where the stream stands, or would stand. */
  #find(id: number): number {
    let at = this.#placeOf(id);
    for (let stream = this.#places[at]; stream !== undefined && stream.id !== id; stream = this.#places[at]) {
      at = this.#after(at);
    }
    return at;
  }

  /** Identifiers of one side are all odd, or all even. */
  #placeOf(id: number): number {
    return (id >>> 1) & (this.#places.length - 1);
  }

  #after(place: number): number {
    return (place + 1) & (this.#places.length - 1);
  }

  #distance(from: number, to: number): number {
    return (to - from) & (this.#places.length - 1);
  }
}

/** Late frames come soon. */
const ENDED_KEPT = 64;

/** Many streams may be reset within a round trip. */
const RESETS_KEPT = 256;

/** Has two rings, so that ends push out no resets. */
class ClosedStreams {
  readonly #ended = new Int32Array(ENDED_KEPT);
  #nextEnded = 0;
  /** Negative if the peer reset it. */
  #resets: Int32Array | undefined;
  #nextReset = 0;

  /** @param streamId is added once */
  add(streamId: number, state: StreamState): void {
    if (state === ENDED) {
      this.#ended[this.#nextEnded] = streamId;
      this.#nextEnded = (this.#nextEnded + 1) % ENDED_KEPT;
      return;
    }
    this.#resets ??= new Int32Array(RESETS_KEPT);
    this.#resets[this.#nextReset] = state === RESET_RECEIVED ? -streamId : streamId;
    this.#nextReset = (this.#nextReset + 1) % RESETS_KEPT;
  }

  stateOf(streamId: number): StreamState {
    if (this.#resets?.includes(streamId)) return RESET_SENT;
    if (this.#resets?.includes(-streamId)) return RESET_RECEIVED;
    return this.#ended.includes(streamId) ? ENDED : FORGOTTEN;
  }
}

/** Stream states (RFC 9113 §5.1) without pushed ones. Content is judged elsewhere. */

/** Decides what a late frame of the peer's means. */
type Ending =
  /** The peer can send nothing more. */
  | 'ended'
  /** The peer may have sent more before it knew. */
  | 'reset_sent'
  | 'reset_received'
  /** It closed too long ago, or was passed over. */
  | 'forgotten';

type StreamState =
  | { readonly kind: 'idle' }
  | { readonly kind: 'open' }
  | { readonly kind: 'half_closed'; readonly endedBy: 'local' | 'remote' }
  | { readonly kind: 'closed'; readonly ending: Ending };

type StreamFrame = 'headers' | 'data' | 'reset' | 'window_update';

type Verdict =
  | { readonly kind: 'next'; readonly state: StreamState }
  /** Flow control and HPACK still apply. */
  | { readonly kind: 'ignored' }
  | { readonly kind: 'stream'; readonly reason: FaultReason }
  | { readonly kind: 'connection'; readonly reason: FaultReason };

const IDLE: StreamState = { kind: 'idle' };
export const OPEN: StreamState = { kind: 'open' };
export const ENDED_BY_REMOTE: StreamState = { kind: 'half_closed', endedBy: 'remote' };
export const ENDED_BY_LOCAL: StreamState = { kind: 'half_closed', endedBy: 'local' };
export const ENDED: StreamState = { kind: 'closed', ending: 'ended' };
export const RESET_SENT: StreamState = { kind: 'closed', ending: 'reset_sent' };
const RESET_RECEIVED: StreamState = { kind: 'closed', ending: 'reset_received' };
export const FORGOTTEN: StreamState = { kind: 'closed', ending: 'forgotten' };

const NEXT = new Map<StreamState, Verdict>(
  [IDLE, OPEN, ENDED_BY_REMOTE, ENDED_BY_LOCAL, ENDED, RESET_SENT, RESET_RECEIVED].map((state) => [
    state,
    { kind: 'next', state },
  ]),
);
const IGNORED: Verdict = { kind: 'ignored' };
const STREAM_IDLE: Verdict = { kind: 'connection', reason: 'stream_idle' };
const STREAM_ID_INVALID: Verdict = { kind: 'connection', reason: 'stream_id_invalid' };
const CLOSED_FOR_ALL: Verdict = { kind: 'connection', reason: 'stream_closed' };
const CLOSED: Verdict = { kind: 'stream', reason: 'stream_closed' };
const HALF_CLOSED: Verdict = { kind: 'stream', reason: 'stream_half_closed' };

/** @param endStream only for HEADERS and DATA */
export function received(state: StreamState, frame: StreamFrame, endStream: boolean): Verdict {
  const brings = frame === 'headers' || frame === 'data';
  switch (state.kind) {
    case 'idle':
      if (frame !== 'headers') return STREAM_IDLE;
      return next(endStream ? ENDED_BY_REMOTE : OPEN);
    case 'open':
      if (frame === 'reset') return next(RESET_RECEIVED);
      return next(endStream ? ENDED_BY_REMOTE : state);
    case 'half_closed':
      if (frame === 'reset') return next(RESET_RECEIVED);
      if (!brings) return next(state);
      if (state.endedBy === 'remote') return HALF_CLOSED;
      return next(endStream ? ENDED : state);
    case 'closed':
      // They may cross with what closed the stream, and so would an answer.
      if (!brings) return IGNORED;
      switch (state.ending) {
        case 'ended':
          return CLOSED_FOR_ALL;
        case 'reset_sent':
          return IGNORED;
        case 'reset_received':
          return CLOSED;
        case 'forgotten':
          return frame === 'headers' ? STREAM_ID_INVALID : CLOSED;
      }
  }
}

/** Undefined if this side must not send the frame. */
export function sent(state: StreamState, frame: StreamFrame, endStream: boolean): StreamState | undefined {
  const brings = frame === 'headers' || frame === 'data';
  switch (state.kind) {
    case 'idle':
      if (frame !== 'headers') return undefined;
      return endStream ? ENDED_BY_LOCAL : OPEN;
    case 'open':
      if (frame === 'reset') return RESET_SENT;
      return endStream ? ENDED_BY_LOCAL : state;
    case 'half_closed':
      if (frame === 'reset') return RESET_SENT;
      if (!brings) return state;
      if (state.endedBy === 'local') return undefined;
      return endStream ? ENDED : state;
    case 'closed':
      return undefined;
  }
}

function next(state: StreamState): Verdict {
  return NEXT.get(state) as Verdict;
}
