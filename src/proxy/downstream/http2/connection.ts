import type { Socket } from 'node:net';
import { SidecarError } from '../../../platform/errors.ts';
import { type Fields, fieldValues } from '../../http/fields.ts';
import { isGrpc } from '../../http/messages.ts';
import type { StreamError } from '../../http2/connection-output.ts';
import { type ConnectionFault, connectionFault, ErrorCode, type FaultReason } from '../../http2/errors.ts';
import type { RequestSection } from '../../http2/messages.ts';
import {
  type RefusedRequest,
  ServerConnection,
  type ServerHandler,
  type ServerStream,
} from '../../http2/server-connection.ts';
import { PrefaceReader } from '../../http2/settings.ts';
import { DenseSet } from '../../io/collections.ts';
import type { Deadline } from '../../io/deadline.ts';
import { isDraining } from '../../transaction/admission.ts';
import { localReplyFor, turnedAway } from '../../transaction/local-reply.ts';
import type { DownstreamContext, HttpProtocol, ProtocolHost } from '../connection.ts';
import { Http2Outlet } from './connection-writer.ts';
import { serverLimits } from './limits.ts';
import { incomingRequest } from './messages.ts';
import {
  type ConnectionStream,
  Http2DownstreamStream,
  Http2RefusedStream,
  type Http2StreamCarrier,
} from './stream.ts';

/** Closing at once could destroy the last frames by a reset. */
const LINGER_MS = 1_000;

/** The last GOAWAY waits for requests that left before the first (RFC 9113 §6.8). */
const ROUND_TRIP_MS = 1_000;

/** Of PING: one measures the round trip, the other shows that the app has read its answers. */
const LEAVING = Buffer.from('leaving.');
const PARTING = Buffer.from('parting.');

export class Http2DownstreamConnection
  implements HttpProtocol, Http2StreamCarrier, ServerHandler<ConnectionStream>
{
  readonly socket: Socket;
  readonly outlet: Http2Outlet<ConnectionStream>;
  readonly #context: DownstreamContext;
  readonly #onFree: () => void;
  readonly #deadline: Deadline;
  readonly #preface = new PrefaceReader();
  readonly #codec: ServerConnection<ConnectionStream>;
  readonly #streams = new DenseSet<ConnectionStream>();
  /** By the present read. */
  #touched: ConnectionStream[] = [];
  #phase: Phase = OPEN;
  #idleUntilMs: number;
  /** Until when the app may read its answers; then counts of answers sent, sent before the last PING, and read. */
  #readUntilMs = 0;
  #answers = 0;
  #answersPinged = 0;
  #answersRead = 0;
  #inputEnded = false;
  #endWatch: (() => void) | undefined;

  /** `onFree` is called whenever a request is settled. */
  constructor(carrier: ProtocolHost, context: DownstreamContext, onFree: () => void) {
    const { socket, deadline } = carrier;
    this.socket = socket;
    this.#context = context;
    this.#onFree = onFree;
    this.#deadline = deadline;
    this.#idleUntilMs = this.#nowMs() + context.snapshot().limits.headerTimeoutMs;
    this.#codec = new ServerConnection(serverLimits(context.snapshot().limits), this);
    this.outlet = new Http2Outlet(carrier, this.#codec, context.clock);
    this.#codec.start();
    if (isDraining(context.load)) this.drain();
  }

  get busy(): boolean {
    return this.#streams.size > 0;
  }

  get heldBytes(): number {
    let bytes = this.#codec.heldBytes + this.outlet.heldBytes;
    for (const stream of this.#streams) bytes += stream.heldBytes;
    return bytes;
  }

  addUpstreamSockets(to: Socket[]): void {
    for (const { upstreamSocket } of this.#streams) if (upstreamSocket !== undefined) to.push(upstreamSocket);
  }

  bytes(chunk: Buffer): void {
    if (this.#phase.kind === 'closing') return;
    const fault = this.#read(chunk);
    for (const stream of this.#touched.splice(0)) stream.afterRead();
    if (fault !== undefined) this.#fail(fault);
    this.outlet.flush();
    if (this.#phase.kind !== 'open') return;
    if (this.busy) this.#boundFrame();
    else this.#beIdle();
  }

  ended(): void {
    this.#inputEnded = true;
    if (this.#phase.kind === 'closing') return;
    // The request can never be whole.
    for (const stream of this.#streams) {
      if (!stream.inputEnded) stream.leave();
    }
    if (!this.busy) this.#close();
    // Upstreams must not go on working for a client that has left.
    else this.#endWatch ??= this.#context.peers.watch(this.socket, () => this.socket.destroy());
  }

  drained(): void {
    if (this.#phase.kind === 'closing') return;
    this.outlet.serveWaiting();
    this.socket.resume();
  }

  tooLate(): void {
    switch (this.#phase.kind) {
      case 'open':
        this.drain();
        break;
      case 'leaving':
        this.#leave();
        break;
      case 'parting':
        this.#close();
        break;
      default:
        this.socket.destroy();
    }
  }

  closed(): void {
    this.#phase = CLOSING;
    this.#endWatch?.();
    for (const stream of this.#streams) stream.gone(false);
    this.outlet.dispose();
  }

  closeIdle(): void {
    this.drain();
  }

  /** Requests that were sent before the app can know are answered. */
  drain(): void {
    if (this.#phase.kind !== 'open') return;
    this.#phase = LEAVING_PHASE;
    this.#codec.announceGoaway();
    this.#ping(LEAVING);
    this.#deadline.set(this.#nowMs() + ROUND_TRIP_MS);
    this.outlet.flush();
  }

  request(
    stream: ServerStream<ConnectionStream>,
    section: RequestSection,
    endStream: boolean,
    neverIndexed: readonly string[],
  ): void {
    const request = incomingRequest(section, neverIndexed);
    const served = new Http2DownstreamStream(this, this.#context, stream, request, endStream);
    this.#opened(stream, served);
    served.transaction.begin();
  }

  refused(stream: ServerStream<ConnectionStream>, reason: RefusedRequest, fields: readonly string[]): void {
    const { snapshot, clock } = this.#context;
    const error =
      reason === 'path_too_long'
        ? new SidecarError('uri_too_long', 'the request target is longer than the limit')
        : new SidecarError('headers_too_large', 'the request head is larger than the limit');
    const asked = { protocol: 'h2', fields } as const;
    const own = turnedAway(this.#context, localReplyFor(error, isGrpc(fields)), {
      code: error.code,
      ...asked,
    });
    const refused = new Http2RefusedStream(this, stream, clock);
    this.#opened(stream, refused);
    refused.answer(own, fieldValues(fields, ':method').includes('HEAD'), snapshot().limits.headerTimeoutMs);
  }

  malformed(): void {
    // The app gets a reset; here it counts as an invalid request.
    this.#context.noRoute.turnedAway('bad_request', 400, 'h2');
  }

  data(stream: ServerStream<ConnectionStream>, data: Buffer, endStream: boolean): void {
    const served = stream.context;
    if (served === undefined) {
      this.outlet.consume(stream, data.length);
      return;
    }
    this.#touched.push(served);
    served.takeData(data, endStream);
  }

  trailers(stream: ServerStream<ConnectionStream>, fields: Fields): void {
    const served = stream.context;
    if (served === undefined) return;
    this.#touched.push(served);
    served.takeTrailers(fields);
  }

  broken(stream: ServerStream<ConnectionStream>, _how: StreamError): void {
    stream.context?.gone(true);
  }

  writable(stream: ServerStream<ConnectionStream> | undefined): void {
    if (stream?.context === undefined) this.outlet.serveWaiting();
    else stream.context.mayGoOn();
  }

  goaway(): void {
    this.drain();
  }

  pong(opaque: Buffer): void {
    if (opaque.equals(LEAVING)) {
      if (this.#phase.kind !== 'parting') this.#answersRead = this.#answersPinged;
      if (this.#phase.kind === 'leaving') this.#leave();
    } else if (this.#phase.kind === 'parting' && opaque.equals(PARTING)) this.#close();
  }

  released(stream: ConnectionStream): void {
    if (!this.#streams.delete(stream) || this.#phase.kind === 'closing') return;
    this.#answers++;
    this.#readUntilMs = Math.max(this.#readUntilMs, this.#nowMs() + stream.timeoutMs);
    if (this.#streams.size === 0) {
      if (this.#phase.kind === 'left' || this.#inputEnded) this.#part();
      else if (this.#phase.kind === 'open') {
        this.#idleUntilMs = this.#nowMs() + this.#context.snapshot().limits.keepAliveTimeoutMs;
        this.#beIdle();
      }
    }
    if (isDraining(this.#context.load)) this.#onFree();
  }

  #opened(stream: ServerStream<ConnectionStream>, context: ConnectionStream): void {
    stream.context = context;
    this.#streams.add(context);
    this.#touched.push(context);
    // Asked before its first request, a client may fail it for want of a connection.
    if (this.#context.load.phase === 'leaving') this.drain();
  }

  #read(chunk: Buffer): ConnectionFault | undefined {
    let at = 0;
    if (!this.#preface.complete) {
      at = this.#preface.read(chunk, 0);
      if (at === -1) {
        this.#codec.goaway(ErrorCode.PROTOCOL_ERROR);
        return connectionFault('preface_malformed');
      }
      if (at === chunk.length) return undefined;
    }
    return this.#codec.receive(at === 0 ? chunk : chunk.subarray(at), this.#nowMs());
  }

  #beIdle(): void {
    const partSinceMs = this.#codec.midFrameSinceMs ?? Number.POSITIVE_INFINITY;
    const partUntilMs = partSinceMs + this.#context.snapshot().limits.headerTimeoutMs;
    this.#deadline.set(Math.min(this.#idleUntilMs, partUntilMs));
  }

  /** A frame must be complete in time during requests, too. The time for a body is its request's. */
  #boundFrame(): void {
    const sinceMs = this.#codec.heldSinceMs;
    if (sinceMs === undefined) this.#deadline.clear();
    else this.#deadline.set(sinceMs + this.#context.snapshot().limits.headerTimeoutMs);
  }

  #leave(): void {
    this.#phase = LEFT;
    this.#codec.goaway(ErrorCode.NO_ERROR);
    this.#deadline.clear();
    this.outlet.flushSoon();
    if (!this.busy) this.#part();
  }

  #ping(opaque: Buffer): void {
    this.#answersPinged = this.#answers;
    this.#codec.ping(opaque);
  }

  /**
   * Closes once the app has read its last answer. An app that still reads also writes WINDOW_UPDATE; a closed
   * connection would answer with a reset, which destroys what is unread.
   */
  #part(): void {
    if (this.#inputEnded || this.#answersRead === this.#answers) {
      this.#close();
      return;
    }
    this.#phase = PARTING_PHASE;
    this.#ping(PARTING);
    this.#deadline.set(Math.max(this.#readUntilMs, this.#nowMs() + LINGER_MS));
    this.outlet.flushSoon();
  }

  #fail({ reason, code }: ConnectionFault): void {
    if (code === ErrorCode.ENHANCE_YOUR_CALM) this.#abused(reason);
    else this.#context.noRoute.turnedAway('bad_request', 400, 'h2');
    this.#close(0);
    for (const stream of this.#streams) stream.gone(false);
    this.outlet.dispose();
  }

  #abused(reason: FaultReason): void {
    this.#context.http2Abuse(reason);
    this.#context.log.warn({ reason }, 'a connection of the app was ended: it asks for more than it may');
  }

  /** Half-closes and reads on: until `readUntilMs` if the system has not taken everything. */
  #close(readUntilMs = this.#readUntilMs): void {
    this.#phase = CLOSING;
    this.outlet.flush();
    const { socket } = this;
    const lingerUntilMs = this.#nowMs() + LINGER_MS;
    this.#deadline.set(socket.writableLength > 0 ? Math.max(readUntilMs, lingerUntilMs) : lingerUntilMs);
    socket.end(() => {
      if (!socket.destroyed) this.#deadline.set(this.#nowMs() + LINGER_MS);
    });
    socket.resume();
  }

  #nowMs(): number {
    return this.#context.clock.monotonicMs();
  }
}

type Phase =
  | { readonly kind: 'open' }
  /** GOAWAY was announced; the last one follows. */
  | { readonly kind: 'leaving' }
  /** The last GOAWAY was sent: the connection closes with its last stream. */
  | { readonly kind: 'left' }
  | { readonly kind: 'parting' }
  | { readonly kind: 'closing' };

const OPEN: Phase = { kind: 'open' };
const LEAVING_PHASE: Phase = { kind: 'leaving' };
const LEFT: Phase = { kind: 'left' };
const PARTING_PHASE: Phase = { kind: 'parting' };
const CLOSING: Phase = { kind: 'closing' };
