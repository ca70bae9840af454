import { AbuseCounter, type AbuseKind, type AbuseLimits } from './abuse.ts';
import { codeOf, ErrorCode, type FaultReason } from './errors.ts';
import type { BodyLength, Fields } from './fields.ts';
import { FRAMES_PER_STREAM, InFlightAfterReset, ReceiveWindow, SendWindow } from './flow-control.ts';
import type { FrameOutput } from './frame-output.ts';
import type { FrameLimits } from './frame-reader.ts';
import { type GoawayFrame, MAX_31_BITS } from './frames.ts';
import type { FieldSectionLimits } from './hpack/decoder.ts';
import { HpackEncoder } from './hpack/encoder.ts';
import { DEFAULT_WINDOW_BYTES, PeerSettings, type Role, Setting } from './settings.ts';
import { ENDED, newWindows, RESET_SENT, type Stream, Streams } from './streams.ts';

/** How a stream ended, if not by itself. */
export type StreamError =
  | { readonly kind: 'reset'; readonly code: ErrorCode }
  /** The peer broke a rule, and this side reset it. */
  | { readonly kind: 'fault'; readonly reason: FaultReason }
  /** GOAWAY says that the peer has not processed it. */
  | { readonly kind: 'unprocessed' };

/** Buffers are valid until the call returns. Handlers may send and reset. */
export interface StreamHandler<S> {
  /** A piece without padding, empty only with `endStream`. */
  data(stream: S, data: Buffer, endStream: boolean): void;
  /** Trailers end the peer's side. */
  trailers(stream: S, fields: Fields, neverIndexed: readonly string[]): void;
  /** Nothing more comes, or may be sent. */
  broken(stream: S, how: StreamError): void;
  /** A window grew: of `stream`, else of the connection or of all streams. */
  writable(stream: S | undefined): void;
  /** The peer will take no more streams. */
  goaway(frame: GoawayFrame): void;
  /** Absent if no PING is sent. */
  pong?(opaque: Buffer): void;
}

export interface MessageStream<T> extends Stream {
  /** The peer's head sets it. */
  body: BodyLength | undefined;
  context: T | undefined;
  /** A CONNECT carries no HEADERS (RFC 9113 §8.5). */
  tunnel: boolean;
}

export interface ConnectionLimits {
  readonly frames: FrameLimits;
  readonly section: FieldSectionLimits;
  /** Bounds the table for what comes, in octets as HPACK counts them. */
  readonly tableBytes: number;
  /** Octets of `:path`. */
  readonly targetBytes: number;
  /** Streams that the peer may have open at once. */
  readonly maxStreams: number;
  /** At least 65 535, which a peer may send before it reads SETTINGS. */
  readonly streamWindowBytes: number;
  readonly connectionWindowBytes: number;
  readonly abuse: AbuseLimits;
}

const REFUSALS: ReadonlySet<FaultReason> = new Set(['too_many_streams', 'going_away']);

export abstract class ConnectionOutput<S extends MessageStream<unknown>> {
  readonly output: FrameOutput;
  readonly peer: PeerSettings;
  protected readonly streams: Streams<S>;
  protected readonly limits: ConnectionLimits;
  protected readonly handler: StreamHandler<S>;
  /** When something came last, on a monotonic clock. */
  protected nowMs = 0;
  protected readonly encoder = new HpackEncoder();
  protected readonly abuse: AbuseCounter;
  protected readonly runOut = new InFlightAfterReset();
  protected readonly sendWindow = new SendWindow(DEFAULT_WINDOW_BYTES);
  protected readonly receiveWindow = new ReceiveWindow(DEFAULT_WINDOW_BYTES, { isShared: true });
  protected settingsUnacknowledged = 0;
  protected pingsUnanswered = 0;

  constructor(role: Role, limits: ConnectionLimits, handler: StreamHandler<S>, output: FrameOutput) {
    this.handler = handler;
    this.output = output;
    this.limits = limits;
    this.peer = new PeerSettings(role === 'server' ? 'client' : 'server');
    this.streams = new Streams(role);
    this.abuse = new AbuseCounter(limits.abuse);
  }

  get openStreams(): number {
    return this.streams.size;
  }

  /** Undefined once it is closed. */
  stream(streamId: number): S | undefined {
    return this.streams.get(streamId);
  }

  /** Octets that may leave in one frame now. */
  sendable(stream: S): number {
    const available = Math.min(
      this.sendWindow.available,
      stream.sendWindow.available,
      this.peer.maxFrameBytes,
    );
    return Math.max(0, available);
  }

  get windowExhausted(): boolean {
    return this.sendWindow.available <= 0;
  }

  /** Only the header: `bytes` octets of payload, at most `sendable`, must follow at once. */
  sendData(stream: S, bytes: number, endStream: boolean): void {
    this.streams.send(stream, 'data', endStream);
    this.sendWindow.take(bytes);
    stream.sendWindow.take(bytes);
    this.output.dataHeader(stream.id, bytes, endStream);
    this.abuse.earn('window_update', 2);
    this.abuse.earn('ping', 1);
    if (endStream) this.closed(stream);
  }

  /** Pseudo-fields first. Credentials are never indexed. */
  sendFields(
    stream: S,
    fields: readonly string[],
    endStream: boolean,
    neverIndexed: readonly string[] = [],
  ): void {
    const state = this.streams.after(stream, 'headers', endStream);
    this.writeFields(stream.id, fields, endStream, neverIndexed);
    this.streams.move(stream, state);
    if (endStream) this.closed(stream);
  }

  /** @returns false if it was closed. */
  reset(stream: S, code: ErrorCode): boolean {
    if (stream.state.kind === 'closed') return false;
    this.runOut.reset(stream.receiveWindow.granted);
    this.streams.send(stream, 'reset', false);
    this.output.reset(stream.id, code);
    return true;
  }

  /** These octets have left the program: the peer may send as many again. */
  consume(stream: S, bytes: number): void {
    this.consumeConnection(bytes);
    this.consumeStream(stream, bytes);
  }

  /** Streams that keep up must not wait for one that does not. */
  consumeConnection(bytes: number): void {
    const increment = this.receiveWindow.consume(bytes);
    if (increment > 0) this.output.windowUpdate(0, increment);
  }

  consumeStream(stream: S, bytes: number): void {
    // No window is of use to a peer that has ended its side or hears of the stream's end.
    const { state } = stream;
    if (state.kind !== 'open' && !(state.kind === 'half_closed' && state.endedBy === 'local')) return;
    const increment = stream.receiveWindow.consume(bytes);
    if (increment > 0) this.output.windowUpdate(stream.id, increment);
  }

  /** DATA may have left other streams next to no window. */
  protected giveBackWhatIsDue(): void {
    const increment = this.receiveWindow.due();
    if (increment > 0) this.output.windowUpdate(0, increment);
  }

  /**
   * RFC 9113 §6.8; `announceGoaway` goes a round trip ahead. A client only ends its own opening of streams.
   */
  goaway(code: ErrorCode): void {
    if (this.peer.role === 'client') this.streams.limitTo(this.lastProcessedId);
    else this.streams.openNoMore();
    this.output.goaway(this.lastProcessedId, code);
  }

  /** Refuses no stream that is on its way. */
  announceGoaway(): void {
    this.output.goaway(MAX_31_BITS, ErrorCode.NO_ERROR);
  }

  ping(opaque: Buffer): void {
    this.pingsUnanswered++;
    this.output.ping(false, opaque);
  }

  /** The highest of the peer's streams that anything was done for. */
  protected abstract get lastProcessedId(): number;

  protected startSettings(more: readonly (readonly [number, number])[]): void {
    const { frames, section, streamWindowBytes, connectionWindowBytes } = this.limits;
    this.output.settings([
      ...more,
      [Setting.HEADER_TABLE_SIZE, this.limits.tableBytes],
      [Setting.INITIAL_WINDOW_SIZE, streamWindowBytes],
      [Setting.MAX_FRAME_SIZE, frames.frameBytes],
      [Setting.MAX_HEADER_LIST_SIZE, section.sectionBytes],
    ]);
    this.settingsUnacknowledged++;
    if (connectionWindowBytes > DEFAULT_WINDOW_BYTES) {
      this.output.windowUpdate(0, this.receiveWindow.enlarge(connectionWindowBytes - DEFAULT_WINDOW_BYTES));
    }
  }

  protected newWindows(): Pick<Stream, 'sendWindow' | 'receiveWindow'> {
    return newWindows({
      receiveBytes: this.limits.streamWindowBytes,
      sendBytes: this.peer.initialWindowBytes,
    });
  }

  protected writeFields(
    streamId: number,
    fields: readonly string[],
    endStream: boolean,
    neverIndexed: readonly string[],
  ): void {
    const before = this.output.length;
    const start = this.output.beginHeaders();
    this.encoder.begin(this.output);
    try {
      this.encoder.fields(this.output, fields, neverIndexed);
    } catch (error) {
      this.output.length = before;
      this.encoder.abandon();
      throw error;
    }
    this.output.endHeaders(start, streamId, endStream, this.peer.maxFrameBytes);
  }

  /**
   * Allows for a reset by the peer. Owners call it after a costly answer: free answers must not pay for
   * costly requests.
   */
  wasUseful(): void {
    this.abuse.earn('reset', 1);
  }

  /** A stream without a reset allows for a few frames. */
  protected closed(stream: S): void {
    if (stream.state !== ENDED) return;
    this.abuse.earn('window_update', FRAMES_PER_STREAM);
    this.abuse.earn('ping', 1);
  }

  /** The stream is open, or just being refused. */
  protected failStream(streamId: number, reason: FaultReason): FaultReason | undefined {
    const stream = this.streams.get(streamId);
    this.output.reset(streamId, codeOf(reason));
    if (stream === undefined) {
      if (REFUSALS.has(reason)) this.runOut.reset(this.limits.streamWindowBytes);
      this.streams.refuse(streamId);
    } else {
      this.runOut.reset(stream.receiveWindow.granted);
      this.streams.send(stream, 'reset', false);
      this.handler.broken(stream, { kind: 'fault', reason });
    }
    if (REFUSALS.has(reason)) return this.spend('ignored_frame');
    return stream === undefined ? this.spend('fault') : this.#spendFault();
  }

  /** Resets a stream even if the faulty frame has ended it. */
  protected failMoved(stream: S, reason: FaultReason): FaultReason | undefined {
    if (stream.state.kind !== 'closed') return this.failStream(stream.id, reason);
    this.output.reset(stream.id, codeOf(reason));
    // Later frames must meet a reset stream, not an ended one.
    stream.state = RESET_SENT;
    this.streams.refuse(stream.id);
    this.handler.broken(stream, { kind: 'fault', reason });
    return this.#spendFault();
  }

  /** Clients can provoke free resets (MadeYouReset); a malformed answer ends only its own request. */
  #spendFault(): FaultReason | undefined {
    return this.peer.role === 'client' ? this.spend('fault') : undefined;
  }

  /** Returns the reason if that ends the connection. */
  protected spend(kind: AbuseKind): FaultReason | undefined {
    return this.abuse.spend(kind, this.nowMs);
  }
}
