import { writeBlock } from '../../wire/http2/field-block.ts';
import {
  Flag,
  type Frame,
  frame,
  goaway,
  PREFACE,
  reset,
  Setting,
  settings,
  Type,
  windowUpdate,
} from '../../wire/http2/frames.ts';
import { Violation } from '../violation.ts';
import type { PeerEnd } from '../world.ts';
import { FrameSplitter, fieldsOf } from './frame-splitter.ts';

/** RFC 9113 §6.9.2. */
const INITIAL_WINDOW = 65_535;

const MAX_PAYLOAD = 16_384;

/** What a peer is told of its connection. */
export interface PeerEvents {
  /** The head of a message, its trailers, or an informational answer. */
  fields(streamId: number, fields: ReadonlyMap<string, string>, end: boolean): void;
  data(streamId: number, data: Buffer, end: boolean): void;
  reset(streamId: number, code: number): void;
  goaway(lastStreamId: number, code: number): void;
  /** All that was to be said on the stream has been written. */
  said(streamId: number): void;
}

export interface HowWritten {
  /** Only the first half of the frame, for now. */
  readonly half?: boolean;
  readonly written?: () => void;
}

type Piece =
  | { readonly kind: 'data'; bytes: Buffer; readonly end: boolean }
  | { readonly kind: 'fields'; readonly fields: readonly string[]; readonly end: boolean };

interface PeerStream {
  readonly id: number;
  mayTake: number;
  mayCome: number;
  readonly unsaid: Piece[];
  /** Whether END_STREAM has been written. */
  said: boolean;
  /** Whether END_STREAM has come. */
  heard: boolean;
  reset: boolean;
}

/**
 * A peer's end of an HTTP/2 connection to the data path: frames, streams and windows, by a reading of RFC 9113 of its own.
 * What the data path says has to be right, too: windows are kept to, streams are open.
 */
export class PeerConnection {
  /** Nothing more is written. */
  ended = false;
  readonly #end: PeerEnd;
  readonly #role: 'app' | 'upstream';
  readonly #events: PeerEvents;
  readonly #splitter: FrameSplitter;
  readonly #streams = new Map<number, PeerStream>();
  /** The second half of a frame, and what is done when it is written. */
  #held: { readonly octets: Buffer; readonly then: () => void } | undefined;
  /** As the data path has said. */
  #initialWindow = INITIAL_WINDOW;
  #mayTake = INITIAL_WINDOW;
  #mayCome = INITIAL_WINDOW;
  #shut = false;
  /** What came while the windows are shut; 0 is the connection's. */
  readonly #owed = new Map<number, number>();
  #lastCame = 0;
  /** What this peer has allowed, once the data path has acknowledged that. */
  #allows = Number.POSITIVE_INFINITY;
  readonly #unacknowledged: number[] = [];

  constructor(end: PeerEnd, role: 'app' | 'upstream', events: PeerEvents, allows?: number) {
    this.#end = end;
    this.#role = role;
    this.#events = events;
    this.#splitter = new FrameSplitter(role === 'upstream', (came) => this.#heed(came));
    if (role === 'app') this.#write(PREFACE);
    this.allow(allows ?? Number.POSITIVE_INFINITY);
  }

  /** Streams at once, as this peer has said last. */
  get allows(): number {
    return this.#unacknowledged.at(-1) ?? this.#allows;
  }

  /** Whether the second half of a frame is still to be written; until then nothing else can be. */
  get holds(): boolean {
    return this.#held !== undefined;
  }

  /** Streams that this peer has heard of, and that are open in either direction. */
  get open(): readonly number[] {
    return [...this.#streams.values()].filter((stream) => !isOver(stream)).map(({ id }) => id);
  }

  /** @param streams at once; not said where it is endless. */
  allow(streams: number): void {
    this.#unacknowledged.push(streams);
    const said = Number.isFinite(streams) ? ([[Setting.MAX_CONCURRENT_STREAMS, streams]] as const) : [];
    this.#write(settings(...said));
  }

  fields(streamId: number, fields: readonly string[], end: boolean, how: HowWritten = {}): void {
    const stream = this.#stream(streamId);
    if (stream.unsaid.length > 0) stream.unsaid.push({ kind: 'fields', fields, end });
    else this.#writeFields(stream, fields, end, how);
  }

  data(streamId: number, bytes: Buffer, end: boolean): void {
    this.#stream(streamId).unsaid.push({ kind: 'data', bytes, end });
    this.#sayOn();
  }

  /** Writes the second half of the frame. */
  goOn(): void {
    if (this.holds) this.#write(Buffer.alloc(0));
  }

  reset(streamId: number, code: number): void {
    this.#stream(streamId).reset = true;
    this.#write(reset(streamId, code));
  }

  goaway(lastStreamId: number, code: number): void {
    this.#write(goaway(lastStreamId, code));
  }

  /** Any octets. */
  stray(octets: Buffer): void {
    this.#write(octets);
  }

  shutWindows(): void {
    this.#shut = true;
  }

  openWindows(): void {
    this.#shut = false;
    for (const [streamId, bytes] of this.#owed) this.#giveRoom(streamId, bytes);
    this.#owed.clear();
  }

  /** Makes room for whatever may still come, as nothing can be said later. */
  openForGood(): void {
    this.openWindows();
    for (const streamId of [0, ...this.open]) this.#giveRoom(streamId, 2 ** 30);
  }

  end(): void {
    this.ended = true;
    this.#end.end();
  }

  push(bytes: Buffer): void {
    this.#splitter.push(bytes);
  }

  #heed(came: Frame): void {
    const { type, flags, streamId, payload } = came;
    switch (type) {
      case Type.SETTINGS:
        if (flags & Flag.ACK) this.#allows = this.#unacknowledged.shift() ?? this.#allows;
        else this.#heedSettings(payload);
        break;
      case Type.PING:
        if (!(flags & Flag.ACK)) this.#write(frame(Type.PING, Flag.ACK, 0, payload));
        break;
      case Type.WINDOW_UPDATE:
        this.#heedWindow(streamId, payload.readUInt32BE(0));
        break;
      case Type.HEADERS:
        if (!(flags & Flag.END_HEADERS)) throw new Violation('a small field block came in several frames');
        this.#heedFields(streamId, payload, (flags & Flag.END_STREAM) !== 0);
        break;
      case Type.DATA:
        this.#heedData(streamId, payload, (flags & Flag.END_STREAM) !== 0);
        break;
      case Type.RST_STREAM: {
        const stream = this.#known(streamId, 'RST_STREAM');
        if (stream.reset) break;
        stream.reset = true;
        this.#events.reset(streamId, payload.readUInt32BE(0));
        break;
      }
      case Type.GOAWAY:
        this.#events.goaway(payload.readUInt32BE(0), payload.readUInt32BE(4));
        break;
      default:
        throw new Violation(`a frame of type ${type} came`);
    }
  }

  #heedSettings(payload: Buffer): void {
    for (let at = 0; at < payload.length; at += 6) {
      const value = payload.readUInt32BE(at + 2);
      if (payload.readUInt16BE(at) !== Setting.INITIAL_WINDOW_SIZE) continue;
      for (const stream of this.#streams.values()) stream.mayTake += value - this.#initialWindow;
      this.#initialWindow = value;
    }
    this.#write(frame(Type.SETTINGS, Flag.ACK, 0));
    this.#sayOn();
  }

  #heedWindow(streamId: number, increment: number): void {
    if (streamId === 0) this.#mayTake += increment;
    else this.#known(streamId, 'WINDOW_UPDATE').mayTake += increment;
    this.#sayOn();
  }

  #heedFields(streamId: number, block: Buffer, end: boolean): void {
    if (this.#role === 'upstream' && streamId > this.#lastCame) {
      this.#lastCame = streamId;
      if (this.open.length + 1 > this.#allows) throw new Violation('more streams came than are allowed');
      this.#stream(streamId);
    }
    const stream = this.#known(streamId, 'HEADERS');
    if (stream.heard) throw new Violation(`fields came on stream ${streamId} after its end`);
    stream.heard = end;
    if (!stream.reset) this.#events.fields(streamId, fieldsOf(block), end);
  }

  #heedData(streamId: number, data: Buffer, end: boolean): void {
    const stream = this.#known(streamId, 'DATA');
    if (stream.heard) throw new Violation(`data came on stream ${streamId} after its end`);
    stream.heard = end;
    stream.mayCome -= data.length;
    this.#mayCome -= data.length;
    if (stream.mayCome < 0 || this.#mayCome < 0) throw new Violation('more data came than there is room for');
    if (data.length > 0) {
      for (const owed of end || stream.reset ? [0] : [0, streamId]) {
        if (this.#shut) this.#owed.set(owed, (this.#owed.get(owed) ?? 0) + data.length);
        else this.#giveRoom(owed, data.length);
      }
    }
    if (!stream.reset) this.#events.data(streamId, data, end);
  }

  #giveRoom(streamId: number, bytes: number): void {
    if (streamId === 0) this.#mayCome += bytes;
    else {
      const stream = this.#stream(streamId);
      if (isOver(stream) || stream.heard) return;
      stream.mayCome += bytes;
    }
    this.#write(windowUpdate(streamId, bytes));
  }

  /** Says what windows take of what is to be said, in the order of the streams. */
  #sayOn(): void {
    for (const stream of this.#streams.values()) {
      for (let [piece] = stream.unsaid; piece !== undefined && !stream.reset; [piece] = stream.unsaid) {
        if (piece.kind === 'fields') {
          stream.unsaid.shift();
          this.#writeFields(stream, piece.fields, piece.end, {});
          continue;
        }
        const bytes = Math.min(piece.bytes.length, MAX_PAYLOAD, stream.mayTake, this.#mayTake);
        if (bytes <= 0 && piece.bytes.length > 0) break;
        const whole = bytes === piece.bytes.length;
        if (whole) stream.unsaid.shift();
        const ends = whole && piece.end;
        stream.mayTake -= bytes;
        this.#mayTake -= bytes;
        this.#write(
          frame(Type.DATA, ends ? Flag.END_STREAM : Flag.NONE, stream.id, piece.bytes.subarray(0, bytes)),
        );
        piece.bytes = piece.bytes.subarray(bytes);
        if (ends) this.#wasSaid(stream);
      }
    }
  }

  #writeFields(
    stream: PeerStream,
    fields: readonly string[],
    end: boolean,
    { half = false, written }: HowWritten,
  ): void {
    const then = (): void => {
      written?.();
      if (end) this.#wasSaid(stream);
    };
    const flags = Flag.END_HEADERS | (end ? Flag.END_STREAM : Flag.NONE);
    const whole = frame(Type.HEADERS, flags, stream.id, writeBlock(fields));
    const at = half ? Math.floor(whole.length / 2) : whole.length;
    this.#write(whole.subarray(0, at));
    if (half) this.#held = { octets: whole.subarray(at), then };
    else then();
  }

  #wasSaid(stream: PeerStream): void {
    stream.said = true;
    this.#events.said(stream.id);
  }

  #stream(id: number): PeerStream {
    const known = this.#streams.get(id);
    if (known !== undefined) return known;
    const stream: PeerStream = {
      id,
      mayTake: this.#initialWindow,
      mayCome: INITIAL_WINDOW,
      unsaid: [],
      said: false,
      heard: false,
      reset: false,
    };
    this.#streams.set(id, stream);
    return stream;
  }

  #known(id: number, what: string): PeerStream {
    const stream = this.#streams.get(id);
    if (stream === undefined) throw new Violation(`${what} came on stream ${id}, which nobody had begun`);
    return stream;
  }

  #write(octets: Buffer): void {
    if (this.ended) return;
    const held = this.#held;
    this.#held = undefined;
    const all = held === undefined ? octets : Buffer.concat([held.octets, octets]);
    if (all.length > 0) this.#end.write(all);
    held?.then();
  }
}

function isOver({ said, heard, reset: isReset }: PeerStream): boolean {
  return isReset || (said && heard);
}
