import type { Socket } from 'node:net';
import type { ProxyErrorCode, SidecarError } from '../../../platform/errors.ts';
import type { Clock } from '../../../platform/time/clock.ts';
import { expectsContinue, type Fields, lowerCaseNames, permittedTrailers } from '../../http/fields.ts';
import { ErrorCode } from '../../http2/errors.ts';
import type { ServerStream } from '../../http2/server-connection.ts';
import { ByteQueue } from '../../io/byte-queue.ts';
import type { Member } from '../../io/collections.ts';
import { asProxyError, logFailure } from '../../proxy-error.ts';
import {
  type DownstreamStream,
  type IncomingRequest,
  type LocalReply,
  type ResponseBody,
  type ResponseHead,
  UpstreamReset,
} from '../../streams/contract.ts';
import type { ListenerContext } from '../../transaction/listener-context.ts';
import { Transaction } from '../../transaction/transaction.ts';
import { type PassedBytes, runTunnel, SocketSide, type TunnelEnd } from '../../tunnel/tunnel.ts';
import type { Http2Outlet, LeavingResponse } from './connection-writer.ts';
import { informationSection, localReplySection, responseSection } from './messages.ts';
import { Http2Sender, type SenderEvents } from './sender.ts';
import { Http2Tunnel, type TunnelStream } from './tunnel.ts';

const NO_TRAILERS: Fields = [];

/** Codes of an upstream's reset that the app gets; all others concern the upstream's connection. */
const PASSED_ON: ReadonlySet<number> = new Set([ErrorCode.CANCEL, ErrorCode.ENHANCE_YOUR_CALM]);

/** To a CONNECT. */
const CONNECTED: Fields = [':status', '200'];

/**
 * One request of an HTTP/2 connection. Its body is given back to the app's window when the upstream has taken it, so no
 * more than the window is held.
 */
export class Http2DownstreamStream
  implements DownstreamStream, ConnectionStream, SenderEvents, TunnelStream, LeavingResponse
{
  place = 0;
  readonly transaction: Transaction;
  requestComplete: boolean;
  inputEnded: boolean;
  readonly offeredProtocols = undefined;
  readonly #carrier: Http2StreamCarrier;
  readonly #context: ListenerContext;
  readonly #stream: ServerStream<ConnectionStream>;
  readonly #request: IncomingRequest;
  readonly #sender: Http2Sender<ConnectionStream>;
  readonly #held = new ByteQueue();
  #onHold: boolean;
  #passedBytes = 0;
  /** Of the request. */
  #trailers = NO_TRAILERS;
  #endPassed: boolean;
  #continued = false;
  timeoutMs = 0;
  /** An answer of the sidecar's own has cost nothing. */
  #fromUpstream = false;
  /** Undefined before the answer's head. */
  #bodiless: boolean | undefined;
  #tunnel: Http2Tunnel | undefined;

  constructor(
    carrier: Http2StreamCarrier,
    context: ListenerContext,
    stream: ServerStream<ConnectionStream>,
    request: IncomingRequest,
    endStream: boolean,
  ) {
    this.#carrier = carrier;
    this.#context = context;
    this.#stream = stream;
    this.#request = request;
    this.inputEnded = endStream;
    // What follows a CONNECT's head is the tunnel's.
    this.requestComplete = endStream || request.method === 'CONNECT';
    this.#endPassed = this.requestComplete && request.method !== 'CONNECT';
    this.#onHold = request.method === 'CONNECT';
    this.#sender = new Http2Sender(carrier.outlet, stream, context.clock, this);
    this.transaction = new Transaction(this, context, request, context.clock.monotonicMs());
  }

  get heldBytes(): number {
    return (
      STREAM_BYTES +
      this.#held.length +
      this.#passedBytes +
      this.#sender.heldBytes +
      this.transaction.heldBytes
    );
  }

  get upstreamSocket(): Socket | undefined {
    return this.transaction.upstreamSocket;
  }

  ownerFor(): undefined {}

  get awaitsContinue(): boolean {
    if (this.requestComplete || this.#continued) return false;
    return expectsContinue(this.#request.fields);
  }

  takeData(data: Buffer, endStream: boolean): void {
    if (endStream) this.inputEnded = true;
    if (this.transaction.over) this.#carrier.outlet.consume(this.#stream, data.length);
    else if (this.#onHold) this.#held.add(data);
    else if (data.length > 0) this.#pass(data);
    this.#onEnd();
  }

  takeTrailers(fields: Fields): void {
    this.inputEnded = true;
    this.#trailers = permittedTrailers(fields);
    this.#onEnd();
  }

  afterRead(): void {
    this.transaction.flushRequest();
    this.#giveBack();
  }

  gone(byReset: boolean): void {
    this.#tunnel?.gone(byReset);
    this.#sender.dispose();
    this.transaction.appGone();
    this.#over();
  }

  mayGoOn(): void {
    this.#sender.goOn();
  }

  leave(): void {
    this.#carrier.outlet.reset(this.#stream, ErrorCode.CANCEL);
    this.gone(false);
  }

  sendInterim(head: ResponseHead): void {
    if (head.status === 100) {
      if (!this.awaitsContinue) return;
      this.#continued = true;
    }
    this.#sender.interim(informationSection(head), head.neverIndexed);
  }

  respond(head: ResponseHead, body: ResponseBody): void {
    this.#bodiless = body === 'none' || head.status === 205;
    this.#fromUpstream = true;
    this.#sender.head(responseSection(head), head.neverIndexed);
  }

  data(slice: Buffer): void {
    if (!this.#bodiless) this.#sender.data(slice);
  }

  flush(): boolean {
    return this.#sender.flush();
  }

  end(trailers: Fields, timeoutMs: number): void {
    this.timeoutMs = timeoutMs;
    this.#sender.end(lowerCaseNames(trailers), timeoutMs);
  }

  sendLocalReply(own: LocalReply, timeoutMs: number): void {
    this.timeoutMs = timeoutMs;
    this.#sender.head(localReplySection(own));
    if (this.#request.method !== 'HEAD') this.#sender.data(Buffer.from(own.body, 'latin1'));
    this.#sender.end(NO_TRAILERS, timeoutMs);
  }

  cut(why: SidecarError<ProxyErrorCode>): void {
    this.#sender.flush();
    const code = why instanceof UpstreamReset && PASSED_ON.has(why.http2Code) ? why.http2Code : undefined;
    this.#break((code as ErrorCode | undefined) ?? ErrorCode.INTERNAL_ERROR);
  }

  pause(): void {
    this.#onHold = true;
  }

  resume(): void {
    if (!this.#onHold) return;
    this.#onHold = false;
    while (this.#held.length > 0 && !this.#onHold && !this.transaction.over) {
      this.#held.take(this.#held.length, (data) => this.#pass(data));
    }
    this.#onEnd();
    this.afterRead();
  }

  /** Only for a CONNECT: HTTP/2 does not switch protocols (RFC 9113 §8.6). */
  becomeTunnel(_switched: undefined, to: TunnelEnd, idleMs: number, bytes: PassedBytes | undefined): void {
    const { clock } = this.#context;
    this.#tunnel = new Http2Tunnel(this);
    this.timeoutMs = idleMs;
    this.#fromUpstream = true;
    this.#sender.head(CONNECTED);
    this.#sender.flush();
    runTunnel(this.#tunnel, new SocketSide(to), { clock, idleMs, bytes });
  }

  /** Other requests share the connection. */
  detach(): undefined {
    return undefined;
  }

  write(chunk: Buffer): boolean {
    this.#sender.data(chunk);
    return this.#sender.flush();
  }

  endOutput(): void {
    this.#sender.end(NO_TRAILERS, this.timeoutMs);
  }

  finish(code: ErrorCode | undefined): void {
    if (code === undefined) this.#endWhole();
    else this.#break(code);
  }

  onDrain(): void {
    if (this.#tunnel === undefined) this.transaction.onDownstreamDrain();
    else this.#tunnel.writable();
  }

  /** The rest of the app's request is not needed (RFC 9113 §8.1). */
  sent(): void {
    if (this.#tunnel !== undefined) {
      this.#tunnel.outputEnded();
      return;
    }
    this.#endWhole();
  }

  left(): void {
    this.transaction.settle(this.#context.clock.monotonicMs());
  }

  tooLate(): void {
    if (this.#tunnel === undefined) this.#break(ErrorCode.CANCEL);
    else this.#tunnel.drop();
  }

  #endWhole(): void {
    const { outlet } = this.#carrier;
    if (!this.inputEnded) outlet.reset(this.#stream, ErrorCode.NO_ERROR);
    else if (this.#fromUpstream) outlet.wasUseful();
    outlet.leaves(this);
    this.#release();
  }

  #break(code: ErrorCode): void {
    this.#sender.dispose();
    this.#carrier.outlet.reset(this.#stream, code);
    this.#over();
  }

  /** Nothing more of the answer leaves. */
  #over(): void {
    this.left();
    this.#release();
  }

  #release(): void {
    // Other streams need the connection's window.
    this.#carrier.outlet.consume(this.#stream, this.#passedBytes + this.#held.length);
    this.#passedBytes = 0;
    this.#held.clear();
    this.#carrier.released(this);
  }

  #pass(data: Buffer): void {
    this.#passedBytes += data.length;
    if (this.#tunnel !== undefined) {
      this.#tunnel.bytes(data);
      return;
    }
    try {
      this.transaction.takeBody(data);
    } catch (error) {
      const cause = asProxyError(error);
      // All other errors are the app's to handle.
      if (cause.code === 'internal') logFailure(this.#context.log, 'none', cause);
      this.transaction.fail(cause);
    }
  }

  #onEnd(): void {
    if (!this.inputEnded || this.#endPassed || this.#onHold) return;
    this.#endPassed = true;
    this.requestComplete = true;
    if (this.#tunnel === undefined) this.transaction.endBody(this.#trailers);
    else this.#tunnel.inputEnded();
  }

  /** Held octets still count against the window. */
  #giveBack(): void {
    const bytes = this.#passedBytes;
    if (this.#onHold && !this.transaction.over) return;
    this.#passedBytes = 0;
    this.#carrier.outlet.consume(this.#stream, bytes);
  }
}

export class Http2RefusedStream implements ConnectionStream, SenderEvents {
  place = 0;
  inputEnded: boolean;
  timeoutMs = 0;
  readonly #carrier: Http2StreamCarrier;
  readonly #stream: ServerStream<ConnectionStream>;
  readonly #sender: Http2Sender<ConnectionStream>;

  constructor(carrier: Http2StreamCarrier, stream: ServerStream<ConnectionStream>, clock: Clock) {
    this.inputEnded = stream.state.kind !== 'open';
    this.#carrier = carrier;
    this.#stream = stream;
    this.#sender = new Http2Sender(carrier.outlet, stream, clock, this);
  }

  get heldBytes(): number {
    return STREAM_BYTES + this.#sender.heldBytes;
  }

  /** @param toHead to HEAD there is no body. */
  answer(own: LocalReply, toHead: boolean, timeoutMs: number): void {
    this.timeoutMs = timeoutMs;
    this.#sender.head(localReplySection(own));
    if (!toHead) this.#sender.data(Buffer.from(own.body, 'latin1'));
    this.#sender.end([], timeoutMs);
  }

  takeData(data: Buffer, endStream: boolean): void {
    if (endStream) this.inputEnded = true;
    this.#carrier.outlet.consume(this.#stream, data.length);
  }

  takeTrailers(_fields: Fields): void {
    this.inputEnded = true;
  }

  afterRead(): void {}

  gone(_byReset: boolean): void {
    this.#sender.dispose();
    this.#carrier.released(this);
  }

  mayGoOn(): void {
    this.#sender.goOn();
  }

  leave(): void {
    this.#end(ErrorCode.CANCEL);
  }

  onDrain(): void {}

  /** The rest of the request is not wanted (RFC 9113 §8.1). */
  sent(): void {
    this.#end(ErrorCode.NO_ERROR);
  }

  tooLate(): void {
    this.#end(ErrorCode.CANCEL);
  }

  #end(code: ErrorCode): void {
    this.#sender.dispose();
    this.#carrier.outlet.reset(this.#stream, code);
    this.#carrier.released(this);
  }
}

/** Of a stream itself. */
const STREAM_BYTES = 6 * 1024;

export interface ConnectionStream extends Member {
  /** The app has ended its side. */
  readonly inputEnded: boolean;
  /** For the app to read the last answer. */
  readonly timeoutMs: number;
  /** Estimated. */
  readonly heldBytes: number;
  /** Of an upstream connection that only its request uses. */
  readonly upstreamSocket?: Socket | undefined;
  /** Valid until this returns. */
  takeData(data: Buffer, endStream: boolean): void;
  takeTrailers(fields: Fields): void;
  afterRead(): void;
  /** The app has reset the stream or left: nothing can be sent. */
  gone(byReset: boolean): void;
  /** The stream's window has grown. */
  mayGoOn(): void;
  /** The request is incomplete, and the app will send nothing more. */
  leave(): void;
}

export interface Http2StreamCarrier {
  readonly outlet: Http2Outlet<ConnectionStream>;
  released(stream: ConnectionStream): void;
}
