/**
 * One HTTP/2 connection without its socket: octets in, calls of a handler and octets out. `ServerConnection` and
 * `ClientConnection` are the two kinds.
 *
 * ```ts
 * connection.start();
 * const fault = connection.receive(chunk, nowMs); // calls the handler
 * socket.write(connection.output.take());         // whatever was to be said: answers, acknowledgements, GOAWAY
 * if (fault !== undefined) socket.destroySoon();
 * ```
 *
 * Data is sent as `sendable` allows, each time as a header that `sendData` writes and the payload that follows it:
 *
 * ```ts
 * const bytes = Math.min(chunk.length, connection.sendable(stream));
 * connection.sendData(stream, bytes, false);
 * connection.output.octets(chunk.subarray(0, bytes)); // or write it to the socket behind what `output` has
 * ```
 *
 * What came is given back to the peer's windows by `consume`, once it has left this program: so the windows bound what
 * is held, and carry back-pressure from one side to the other.
 */

import { AbuseCounter, type AbuseKind } from './abuse.ts';
import type { ConnectionLimits } from './connection-limits.ts';
import { ErrorCode } from './error-code.ts';
import { type ConnectionFault, codeOf, connectionFault, type FaultReason } from './fault.ts';
import { trailersFault } from './field-section.ts';
import type { DataPiece, Frame, GoawayFrame, HeadersFrame } from './frame.ts';
import { FrameOutput } from './frame-output.ts';
import { FrameReader } from './frame-reader.ts';
import { MAX_31_BITS } from './frame-type.ts';
import { type DecodedFields, HpackDecoder, type TooLarge } from './hpack/decoder.ts';
import { HpackEncoder } from './hpack/encoder.ts';
import { DEFAULT_WINDOW_BYTES, PeerSettings, type Role, Setting } from './settings.ts';
import type { MessageStream, StreamHandler } from './stream-handler.ts';
import { ENDED, FORGOTTEN, RESET_SENT } from './stream-state.ts';
import { newWindows, type Stream, Streams } from './streams.ts';
import { ReceiveWindow, SendWindow } from './windows.ts';

const REFUSALS: ReadonlySet<FaultReason> = new Set(['too_many_streams', 'going_away']);

/** Streams that end earn what their frames may cost. */
const FRAMES_PER_STREAM = 4;

/** WINDOW_UPDATE for fewer octets is counted; what gives back more, of what was sent, is not (Go does for 4096 each). */
const TINY_INCREMENT_BYTES = 1024;

export abstract class Connection<S extends MessageStream<unknown>> {
  readonly output: FrameOutput;
  readonly peer: PeerSettings;
  protected readonly streams: Streams<S>;
  protected readonly limits: ConnectionLimits;
  protected readonly encoder = new HpackEncoder();
  #nowMs = 0;
  #midFrameSinceMs: number | undefined;
  readonly #handler: StreamHandler<S>;
  readonly #reader: FrameReader;
  readonly #decoder: HpackDecoder;
  readonly #abuse: AbuseCounter;
  readonly #sendWindow = new SendWindow(DEFAULT_WINDOW_BYTES);
  readonly #receiveWindow = new ReceiveWindow(DEFAULT_WINDOW_BYTES);
  /** Whether the peer has said its first SETTINGS, and `peer` is what it said. */
  settingsCame = false;
  #settingsUnacknowledged = 0;
  #pingsUnanswered = 0;
  /** What peers may still send, in octets of DATA and in other frames, for streams that this side has reset. */
  #underWayBytes = 0;
  #underWayFrames = 0;
  #fault: ConnectionFault | undefined;

  constructor(role: Role, limits: ConnectionLimits, handler: StreamHandler<S>, output = new FrameOutput()) {
    this.output = output;
    this.limits = limits;
    this.peer = new PeerSettings(role === 'server' ? 'client' : 'server');
    this.streams = new Streams(role);
    this.#handler = handler;
    this.#reader = new FrameReader(limits.frames);
    this.#decoder = new HpackDecoder(limits.section);
    this.#abuse = new AbuseCounter(limits.abuse);
  }

  /** Since when part of a frame has waited for its rest, if it does: the peer is slow or gone, not idle. */
  get midFrameSinceMs(): number | undefined {
    return this.#midFrameSinceMs;
  }

  /** The same where nothing of that frame, or field block, could be given so far: it is not DATA. */
  get heldSinceMs(): number | undefined {
    return this.#reader.midData ? undefined : this.#midFrameSinceMs;
  }

  /** Streams that are open or half-closed. */
  get openStreams(): number {
    return this.streams.size;
  }

  /** The stream of that identifier, while it is open or half-closed. */
  stream(streamId: number): S | undefined {
    return this.streams.get(streamId);
  }

  /**
   * Takes what came. A fault ends the connection: GOAWAY is then in `output`, and nothing more may be given.
   * @param nowMs on a monotonic clock
   */
  receive(chunk: Buffer, nowMs: number): ConnectionFault | undefined {
    if (this.#fault !== undefined) return this.#fault;
    this.#nowMs = nowMs;
    for (let at = 0; ; at = this.#reader.position) {
      const frame = this.#reader.read(chunk, at);
      if (frame === undefined) break;
      this.#midFrameSinceMs = undefined;
      const reason = this.#take(frame);
      if (reason === undefined) {
        this.settled();
        continue;
      }
      this.#fault = connectionFault(reason);
      this.output.goaway(this.lastProcessedId, this.#fault.code);
      return this.#fault;
    }
    this.#midFrameSinceMs = this.#reader.started ? (this.#midFrameSinceMs ?? nowMs) : undefined;
    return undefined;
  }

  /** How many octets of data may be sent on a stream, in one frame, now. */
  sendable(stream: S): number {
    const available = Math.min(
      this.#sendWindow.available,
      stream.sendWindow.available,
      this.peer.maxFrameBytes,
    );
    return Math.max(0, available);
  }

  /** Writes the header of a DATA frame; its payload of so many octets, no more than are `sendable`, follows at once. */
  sendData(stream: S, bytes: number, endStream: boolean): void {
    this.streams.send(stream, 'data', endStream);
    this.#sendWindow.take(bytes);
    stream.sendWindow.take(bytes);
    this.output.dataHeader(stream.id, bytes, endStream);
    this.#abuse.earn('window_update', 2);
    this.#abuse.earn('ping', 1);
    if (endStream) this.#closed(stream);
  }

  /** Sends a head, or trailers: pseudo-fields come first, and credentials are never indexed. */
  sendFields(
    stream: S,
    fields: readonly string[],
    endStream: boolean,
    neverIndexed: readonly string[] = [],
  ): void {
    const state = this.streams.after(stream, 'headers', endStream);
    this.writeFields(stream.id, fields, endStream, neverIndexed);
    this.streams.move(stream, state);
    if (endStream) this.#closed(stream);
  }

  /** Resets a stream; one that is closed is left as it is. */
  reset(stream: S, code: ErrorCode): void {
    if (stream.state.kind === 'closed') return;
    this.#letRunOut(stream.receiveWindow.granted);
    this.streams.send(stream, 'reset', false);
    this.output.reset(stream.id, code);
  }

  /** Octets that `data` brought have left: the peer may send as many again, on this stream while it is open. */
  consume(stream: S, bytes: number): void {
    this.consumeConnection(bytes);
    this.consumeStream(stream, bytes);
  }

  /** The same for the window of the connection alone: streams that keep up are not to wait for one that does not. */
  consumeConnection(bytes: number): void {
    const increment = this.#receiveWindow.consume(bytes);
    if (increment > 0) this.output.windowUpdate(0, increment);
  }

  /** The same for the window of the stream alone. */
  consumeStream(stream: S, bytes: number): void {
    // A peer that has ended its side, or hears that the stream is over, has no use for a window.
    const { state } = stream;
    if (state.kind !== 'open' && !(state.kind === 'half_closed' && state.endedBy === 'local')) return;
    const increment = stream.receiveWindow.consume(bytes);
    if (increment > 0) this.output.windowUpdate(stream.id, increment);
  }

  /**
   * Says that no streams are taken but those that came (RFC 9113 §6.8). `announceGoaway` goes a round trip before. A
   * client speaks of pushes: it opens no more streams, and those that are open go on.
   */
  goaway(code: ErrorCode): void {
    if (this.peer.role === 'client') this.streams.limitTo(this.lastProcessedId);
    else this.streams.openNoMore();
    this.output.goaway(this.lastProcessedId, code);
  }

  /** Says that GOAWAY is about to come, without refusing what is on its way. */
  announceGoaway(): void {
    this.output.goaway(MAX_31_BITS, ErrorCode.NO_ERROR);
  }

  /** Sends PING, by which a connection that is dead is told from one that is quiet. */
  ping(opaque: Buffer): void {
    this.#pingsUnanswered++;
    this.output.ping(false, opaque);
  }

  /** The highest stream of the peer's that anything was done for. */
  protected abstract get lastProcessedId(): number;

  /**
   * HEADERS that are not trailers, with which a stream begins, or an answer on the stream that is given.
   * @returns what ends the connection
   */
  protected abstract head(
    streamId: number,
    endStream: boolean,
    stream: S | undefined,
    block: DecodedFields | TooLarge,
  ): FaultReason | undefined;

  /** Whether HEADERS on a stream that is open are its trailers. */
  protected abstract areTrailers(stream: S): boolean;

  /** A frame was heeded. */
  protected settled(): void {}

  protected startSettings(more: readonly (readonly [number, number])[]): void {
    const { frames, section, streamWindowBytes, connectionWindowBytes } = this.limits;
    this.output.settings([
      ...more,
      [Setting.HEADER_TABLE_SIZE, this.limits.tableBytes],
      [Setting.INITIAL_WINDOW_SIZE, streamWindowBytes],
      [Setting.MAX_FRAME_SIZE, frames.frameBytes],
      [Setting.MAX_HEADER_LIST_SIZE, section.sectionBytes],
    ]);
    this.#settingsUnacknowledged++;
    if (connectionWindowBytes > DEFAULT_WINDOW_BYTES) {
      this.output.windowUpdate(0, this.#receiveWindow.enlarge(connectionWindowBytes - DEFAULT_WINDOW_BYTES));
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
      // Nothing of it is sent: what was written before it still stands.
      this.output.length = before;
      this.encoder.abandon();
      throw error;
    }
    this.output.endHeaders(start, streamId, endStream, this.peer.maxFrameBytes);
  }

  /** Resets a stream for a reason: an open one, or one that is only just refused. */
  protected failStream(streamId: number, reason: FaultReason): FaultReason | undefined {
    const stream = this.streams.get(streamId);
    this.output.reset(streamId, codeOf(reason));
    if (stream === undefined) {
      if (REFUSALS.has(reason)) this.#letRunOut(this.limits.streamWindowBytes);
      this.streams.refuse(streamId);
    } else {
      this.#letRunOut(stream.receiveWindow.granted);
      this.streams.send(stream, 'reset', false);
      this.#handler.broken(stream, { kind: 'fault', reason });
    }
    // A stream that is refused has cost no more than its frame.
    return this.#spend(REFUSALS.has(reason) ? 'ignored_frame' : 'fault');
  }

  /** Resets a stream for a reason, though its own frame may have moved it to its end. */
  protected failMoved(stream: S, reason: FaultReason): FaultReason | undefined {
    if (stream.state.kind !== 'closed') return this.failStream(stream.id, reason);
    this.output.reset(stream.id, codeOf(reason));
    // However its frame was cut, what comes after it meets a stream that was reset, not one that ended.
    stream.state = RESET_SENT;
    this.streams.refuse(stream.id);
    this.#handler.broken(stream, { kind: 'fault', reason });
    return this.#spend('fault');
  }

  #spend(kind: AbuseKind): FaultReason | undefined {
    return this.#abuse.spend(kind, this.#nowMs);
  }

  /** Heeds a frame; what is wrong with it, if that ends the connection. */
  #take(frame: Frame): FaultReason | undefined {
    if (frame.kind === 'connection_fault') return frame.reason;
    if (!this.settingsCame) {
      if (frame.kind !== 'settings') return 'preface_malformed';
      this.settingsCame = true;
    }
    switch (frame.kind) {
      case 'data':
        return this.#data(frame);
      case 'headers':
        return this.#headers(frame);
      case 'reset':
        return this.#resetCame(frame.streamId, frame.code);
      case 'settings':
        return this.#settings(frame.payload);
      case 'settings_ack':
        return this.#settingsAcknowledged();
      case 'ping':
        if (frame.ack) return this.#pongCame(frame.opaque);
        this.output.ping(true, frame.opaque);
        return this.#spend('ping');
      case 'goaway':
        return this.#goawayCame(frame);
      case 'window_update':
        return this.#windowUpdate(frame.streamId, frame.increment);
      case 'ignored':
        return this.#spend('ignored_frame');
      case 'stream_fault':
        return this.#streamFault(frame.streamId, frame.reason);
    }
  }

  #data(piece: DataPiece): FaultReason | undefined {
    const { streamId, windowBytes, endStream } = piece;
    if (!this.#receiveWindow.receive(windowBytes)) return 'window_exceeded';
    if (!piece.empty) this.#abuse.earn('empty_data', 1);
    const flood = piece.empty ? this.#spend('empty_data') : undefined;
    if (flood !== undefined) return flood;

    const stream = this.streams.get(streamId);
    const verdict = this.streams.receive(streamId, 'data', endStream);
    switch (verdict.kind) {
      case 'connection':
        return verdict.reason;
      case 'ignored':
        this.consumeConnection(windowBytes);
        return this.#dataRanOut(piece);
      case 'stream':
        this.consumeConnection(windowBytes);
        return this.failStream(streamId, verdict.reason);
      case 'next':
        return stream === undefined ? undefined : this.#dataOf(stream, piece);
    }
  }

  #dataOf(stream: S, { data, windowBytes, endStream }: DataPiece): FaultReason | undefined {
    const wrong = stream.receiveWindow.receive(windowBytes)
      ? stream.body === undefined
        ? 'data_before_head'
        : stream.body.receive(data.length, endStream)
      : 'window_exceeded';
    if (wrong !== undefined) {
      this.consumeConnection(windowBytes);
      return this.failMoved(stream, wrong);
    }
    const padding = windowBytes - data.length;
    if (padding > 0) this.consume(stream, padding);
    if (data.length > 0 || endStream) this.#handler.data(stream, data, endStream);
    if (endStream) this.#closed(stream);
    return undefined;
  }

  #headers(frame: HeadersFrame): FaultReason | undefined {
    // Before anything else: whatever becomes of the stream, the table has to stay in step.
    const block = this.#decoder.decode(frame.block);
    if (block.kind === 'connection_fault') return block.reason;
    const { streamId, endStream } = frame;
    const stream = this.streams.get(streamId);
    const verdict = this.streams.receive(streamId, 'headers', endStream);
    switch (verdict.kind) {
      case 'connection':
        return verdict.reason;
      case 'ignored':
        return this.#frameRanOut();
      case 'stream':
        return this.failStream(streamId, verdict.reason);
      case 'next':
        if (stream === undefined) {
          if (frame.selfDependent) return this.failStream(streamId, 'self_dependency');
          return this.head(streamId, endStream, undefined, block);
        }
        if (frame.selfDependent) return this.failMoved(stream, 'self_dependency');
        if (stream.tunnel) return this.failMoved(stream, 'fields_in_tunnel');
        return this.areTrailers(stream)
          ? this.#trailers(stream, block, endStream)
          : this.head(streamId, endStream, stream, block);
    }
  }

  #trailers(stream: S, block: DecodedFields | TooLarge, endStream: boolean): FaultReason | undefined {
    if (block.kind === 'too_large') return this.failMoved(stream, 'fields_too_large');
    const wrong = trailersFault(block.fields, endStream) ?? stream.body?.receive(0, true);
    if (wrong !== undefined) return this.failMoved(stream, wrong);
    this.#handler.trailers(stream, block.fields, block.neverIndexed);
    this.#closed(stream);
    return undefined;
  }

  #resetCame(streamId: number, code: ErrorCode): FaultReason | undefined {
    const stream = this.streams.get(streamId);
    const verdict = this.streams.receive(streamId, 'reset', false);
    if (verdict.kind === 'connection') return verdict.reason;
    if (stream !== undefined) this.#handler.broken(stream, { kind: 'reset', code });
    // A server that resets what it was asked pays for it itself.
    if (this.peer.role === 'client') return this.#spend('reset');
    return stream === undefined ? this.#frameRanOut() : undefined;
  }

  #settings(payload: Buffer): FaultReason | undefined {
    const before = this.peer.initialWindowBytes;
    const wrong = this.#spend('settings') ?? this.peer.apply(payload);
    if (wrong !== undefined) return wrong;
    const grown = this.peer.initialWindowBytes - before;
    if (grown !== 0 && !this.streams.adjustSendWindows(grown)) return 'window_overflow';
    this.encoder.setPeerTableSize(this.peer.smallestHeaderTableBytes);
    this.output.settingsAck();
    if (grown > 0) this.#handler.writable(undefined);
    return undefined;
  }

  #settingsAcknowledged(): FaultReason | undefined {
    if (this.#settingsUnacknowledged === 0) return 'settings_ack_unasked';
    this.#settingsUnacknowledged--;
    this.#decoder.setLimit(this.limits.tableBytes);
    return undefined;
  }

  #pongCame(opaque: Buffer): FaultReason | undefined {
    // Unasked it means nothing.
    if (this.#pingsUnanswered === 0) return this.#spend('ignored_frame');
    this.#pingsUnanswered--;
    this.#handler.pong?.(opaque);
    return undefined;
  }

  #goawayCame(frame: GoawayFrame): FaultReason | undefined {
    // To a server it says that nothing may be pushed, and that no more requests come.
    const beyond = this.peer.role === 'server' ? this.streams.limitTo(frame.lastStreamId) : [];
    for (const stream of beyond) this.#handler.broken(stream, { kind: 'unprocessed' });
    this.#handler.goaway(frame);
    return this.#spend('goaway');
  }

  #windowUpdate(streamId: number, increment: number): FaultReason | undefined {
    const window = streamId === 0 ? this.#sendWindow : this.streams.get(streamId)?.sendWindow;
    const returned = window?.returns(increment) === true;
    const flood = returned && increment >= TINY_INCREMENT_BYTES ? undefined : this.#spend('window_update');
    if (flood !== undefined) return flood;
    if (streamId === 0) {
      if (!this.#sendWindow.grow(increment)) return 'window_overflow';
      this.#handler.writable(undefined);
      return undefined;
    }
    const verdict = this.streams.receive(streamId, 'window_update', false);
    if (verdict.kind === 'connection') return verdict.reason;
    const stream = this.streams.get(streamId);
    if (stream === undefined) return undefined;
    if (!stream.sendWindow.grow(increment)) return this.failStream(streamId, 'window_overflow');
    this.#handler.writable(stream);
    return undefined;
  }

  /** A fault of a frame that belongs to a stream: there may be none to reset. */
  #streamFault(streamId: number, reason: FaultReason): FaultReason | undefined {
    const state = this.streams.stateOf(streamId);
    if (state.kind === 'idle') return reason;
    if (state === RESET_SENT || state === FORGOTTEN) return this.#spend('ignored_frame');
    return this.failStream(streamId, reason);
  }

  /** This side resets a stream: what the peer sent before it knew is legal. */
  #letRunOut(bytes: number): void {
    this.#underWayBytes += bytes;
    this.#underWayFrames += FRAMES_PER_STREAM;
  }

  /** DATA for a stream that was reset: what its window had allowed is free, and a frame that was cut counts once. */
  #dataRanOut({ windowBytes, last }: DataPiece): FaultReason | undefined {
    const free = windowBytes > 0 && windowBytes <= this.#underWayBytes;
    this.#underWayBytes = Math.max(0, this.#underWayBytes - windowBytes);
    return free || !last ? undefined : this.#spend('ignored_frame');
  }

  /** Another frame for a stream that is closed. */
  #frameRanOut(): FaultReason | undefined {
    if (this.#underWayFrames === 0) return this.#spend('ignored_frame');
    this.#underWayFrames--;
    return undefined;
  }

  /**
   * A stream was useful work: it goes with one that the peer resets. The owner says so, who knows what an answer has
   * cost: those that cost nothing are not to pay for requests that do.
   */
  wasUseful(): void {
    this.#abuse.earn('reset', 1);
  }

  /** A stream that both sides have ended, and neither has reset, goes with a few frames. */
  #closed(stream: S): void {
    if (stream.state !== ENDED) return;
    this.#abuse.earn('window_update', FRAMES_PER_STREAM);
    this.#abuse.earn('ping', 1);
  }
}
