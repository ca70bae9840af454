/**
 * One HTTP/2 connection without its socket, either `ServerConnection` or `ClientConnection`.
 *
 * ```ts
 * connection.start();
 * const fault = connection.receive(chunk, nowMs); // calls the handler
 * socket.write(connection.output.take());
 * if (fault !== undefined) socket.destroySoon();
 * ```
 *
 * Call `consume` once data has left the program, so that windows bound what is held.
 */

import {
  type ConnectionLimits,
  ConnectionOutput,
  type MessageStream,
  type StreamHandler,
} from './connection-output.ts';
import { type ConnectionFault, connectionFault, type ErrorCode, type FaultReason } from './errors.ts';
import { trailersFault } from './fields.ts';
import { FrameOutput } from './frame-output.ts';
import { FrameReader } from './frame-reader.ts';
import type { DataPiece, Frame, GoawayFrame, HeadersFrame } from './frames.ts';
import { HpackDecoder, type TooLarge } from './hpack/decoder.ts';
import { type DecodedFields, KnownBlocks } from './hpack/known-blocks.ts';
import type { Role } from './settings.ts';
import { FORGOTTEN, RESET_SENT } from './streams.ts';

/** Fewer octets in a WINDOW_UPDATE are abuse. (Go sends 4096.) */
const TINY_INCREMENT_BYTES = 1024;

export abstract class Connection<S extends MessageStream<unknown>> extends ConnectionOutput<S> {
  #midFrameSinceMs: number | undefined;
  readonly #reader: FrameReader;
  readonly #decoder: HpackDecoder;
  /** Whether the peer's settings are in `peer`. */
  settingsCame = false;
  #fault: ConnectionFault | undefined;

  constructor(role: Role, limits: ConnectionLimits, handler: StreamHandler<S>, output = new FrameOutput()) {
    super(role, limits, handler, output);
    this.#reader = new FrameReader(limits.frames);
    this.#decoder = new HpackDecoder(limits.section, new KnownBlocks());
  }

  /** Part of a frame waits for its rest: the peer is slow or gone, not idle. */
  get midFrameSinceMs(): number | undefined {
    return this.#midFrameSinceMs;
  }

  /** Undefined for DATA, too, which passes in pieces. */
  get heldSinceMs(): number | undefined {
    return this.#reader.midData ? undefined : this.#midFrameSinceMs;
  }

  get heldBytes(): number {
    return this.#reader.heldBytes;
  }

  /**
   * After a fault send `output`, which has GOAWAY, and receive no more.
   * @param nowMs on a monotonic clock
   */
  receive(chunk: Buffer, nowMs: number): ConnectionFault | undefined {
    if (this.#fault !== undefined) return this.#fault;
    this.nowMs = nowMs;
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

  /**
   * HEADERS that are no trailers.
   * @returns what ends the connection
   */
  protected abstract head(
    streamId: number,
    endStream: boolean,
    stream: S | undefined,
    block: DecodedFields | TooLarge,
  ): FaultReason | undefined;

  protected abstract areTrailers(stream: S): boolean;

  /** Called after each frame. */
  protected settled(): void {}

  /** Returns what ends the connection. */
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
        return this.spend('ping');
      case 'goaway':
        return this.#goawayCame(frame);
      case 'window_update':
        return this.#windowUpdate(frame.streamId, frame.increment);
      case 'ignored':
        return this.spend('ignored_frame');
      case 'stream_fault':
        return this.#streamFault(frame.streamId, frame.reason);
    }
  }

  #data(piece: DataPiece): FaultReason | undefined {
    const { streamId, windowBytes, endStream } = piece;
    if (!this.receiveWindow.receive(windowBytes)) return 'window_exceeded';
    this.giveBackWhatIsDue();
    if (!piece.empty) this.abuse.earn('empty_data', 1);
    const flood = piece.empty ? this.spend('empty_data') : undefined;
    if (flood !== undefined) return flood;

    const stream = this.streams.get(streamId);
    const verdict = this.streams.receive(streamId, 'data', endStream);
    switch (verdict.kind) {
      case 'connection':
        return verdict.reason;
      case 'ignored':
        this.consumeConnection(windowBytes);
        return this.runOut.data(piece) ? undefined : this.spend('ignored_frame');
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
    if (data.length > 0 || endStream) this.handler.data(stream, data, endStream);
    if (endStream) this.closed(stream);
    return undefined;
  }

  #headers(frame: HeadersFrame): FaultReason | undefined {
    // Whatever becomes of the stream, the table has to stay in step.
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
    this.handler.trailers(stream, block.fields, block.neverIndexed);
    this.closed(stream);
    return undefined;
  }

  #resetCame(streamId: number, code: ErrorCode): FaultReason | undefined {
    const stream = this.streams.get(streamId);
    const verdict = this.streams.receive(streamId, 'reset', false);
    if (verdict.kind === 'connection') return verdict.reason;
    if (stream !== undefined) this.handler.broken(stream, { kind: 'reset', code });
    // A server pays for its resets itself.
    if (this.peer.role === 'client') return this.spend('reset');
    return stream === undefined ? this.#frameRanOut() : undefined;
  }

  #settings(payload: Buffer): FaultReason | undefined {
    const before = this.peer.initialWindowBytes;
    const wrong = this.spend('settings') ?? this.peer.apply(payload);
    if (wrong !== undefined) return wrong;
    const grown = this.peer.initialWindowBytes - before;
    if (grown !== 0 && !this.streams.adjustSendWindows(grown)) return 'window_overflow';
    this.encoder.setPeerTableSize(this.peer.smallestHeaderTableBytes);
    this.output.settingsAck();
    if (grown > 0) this.handler.writable(undefined);
    return undefined;
  }

  #settingsAcknowledged(): FaultReason | undefined {
    if (this.settingsUnacknowledged === 0) return 'settings_ack_unasked';
    this.settingsUnacknowledged--;
    this.#decoder.setLimit(this.limits.tableBytes);
    return undefined;
  }

  #pongCame(opaque: Buffer): FaultReason | undefined {
    // Unsolicited, it means nothing.
    if (this.pingsUnanswered === 0) return this.spend('ignored_frame');
    this.pingsUnanswered--;
    this.handler.pong?.(opaque);
    return undefined;
  }

  #goawayCame(frame: GoawayFrame): FaultReason | undefined {
    // To a server it means no pushes and no more requests.
    const beyond = this.peer.role === 'server' ? this.streams.limitTo(frame.lastStreamId) : [];
    for (const stream of beyond) this.handler.broken(stream, { kind: 'unprocessed' });
    this.handler.goaway(frame);
    return this.spend('goaway');
  }

  #windowUpdate(streamId: number, increment: number): FaultReason | undefined {
    const window = streamId === 0 ? this.sendWindow : this.streams.get(streamId)?.sendWindow;
    const returned = window?.returns(increment) === true;
    const flood = returned && increment >= TINY_INCREMENT_BYTES ? undefined : this.spend('window_update');
    if (flood !== undefined) return flood;
    if (streamId === 0) {
      if (!this.sendWindow.grow(increment)) return 'window_overflow';
      this.handler.writable(undefined);
      return undefined;
    }
    const verdict = this.streams.receive(streamId, 'window_update', false);
    if (verdict.kind === 'connection') return verdict.reason;
    const stream = this.streams.get(streamId);
    if (stream === undefined) return undefined;
    if (!stream.sendWindow.grow(increment)) return this.failStream(streamId, 'window_overflow');
    this.handler.writable(stream);
    return undefined;
  }

  /** There may be no stream to reset. */
  #streamFault(streamId: number, reason: FaultReason): FaultReason | undefined {
    const state = this.streams.stateOf(streamId);
    if (state.kind === 'idle') return reason;
    if (state === RESET_SENT || state === FORGOTTEN) return this.spend('ignored_frame');
    return this.failStream(streamId, reason);
  }

  #frameRanOut(): FaultReason | undefined {
    return this.runOut.frame() ? undefined : this.spend('ignored_frame');
  }
}
