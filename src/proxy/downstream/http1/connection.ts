import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { SidecarError } from '../../../platform/errors.ts';
import type { BodyDecoder } from '../../http1/body-decoder.ts';
import { type HeadReader, requestHeadReader } from '../../http1/head-reader.ts';
import type { RequestHead } from '../../http1/heads.ts';
import { CoalescingWriter } from '../../io/coalescing-writer.ts';
import type { Deadline } from '../../io/deadline.ts';
import { cutOff, type TakeBytes } from '../../io/sockets.ts';
import { asProxyError, logFailure } from '../../proxy-error.ts';
import { ConnectionOwner, type ConnectionSuccessor } from '../../streams/contract.ts';
import { isDraining } from '../../transaction/admission.ts';
import { localReplyMessage, problemOf, turnedAway } from '../../transaction/local-reply.ts';
import type { Transaction } from '../../transaction/transaction.ts';
import type { DownstreamContext, HttpProtocol, ProtocolHost } from '../connection.ts';
import { type Http1Carrier, Http1DownstreamStream } from './stream.ts';

/** Closing at once could reset the answer away (RFC 9112 §9.6). */
const LINGER_MS = 1_000;

/** For pipelined requests; beyond it the client waits. */
const AHEAD_BYTES = 16 * 1024;

/**
 * Requests are served one after another, the next one after the client reads its answers. A client that has half-closed
 * gets its answers.
 */
export class Http1DownstreamConnection implements Http1Carrier, HttpProtocol {
  readonly socket: Socket;
  readonly writer: CoalescingWriter;
  readonly #context: DownstreamContext;
  readonly onFree: () => void;
  endsWithResponse = false;
  readonly #heads: HeadReader<RequestHead>;
  readonly #deadline: Deadline;
  #stage: Stage = HEAD;
  /** Bytes that came too early. */
  #ahead: Buffer | undefined;
  #take: TakeBytes = this.#onBytes;
  #onHold = false;
  #reading = false;
  /** The client has half-closed. */
  #inputEnded = false;
  #endWatch: (() => void) | undefined;
  #owner: ConnectionOwner | undefined;

  /** `onFree` is called whenever a request is settled. */
  constructor({ socket, deadline }: ProtocolHost, context: DownstreamContext, onFree: () => void) {
    this.socket = socket;
    this.writer = new CoalescingWriter(socket);
    this.#context = context;
    this.onFree = onFree;
    this.#heads = requestHeadReader(context.snapshot().limits);
    this.#deadline = deadline;
  }

  get busy(): boolean {
    const { kind } = this.#stage;
    return kind === 'serving' || kind === 'tunnel' || this.#successor?.busy === true;
  }

  get heldBytes(): number {
    const stage = this.#stage;
    const unread = (this.#ahead?.length ?? 0) + this.#heads.heldBytes;
    if (stage.kind !== 'serving') return unread;
    return unread + stage.transaction.heldBytes + (stage.body?.heldBytes ?? 0);
  }

  addUpstreamSockets(to: Socket[]): void {
    const socket = this.#stage.kind === 'serving' ? this.#stage.transaction.upstreamSocket : undefined;
    if (socket !== undefined) to.push(socket);
  }

  /** A proxy may send several callers' requests on one connection: what was another caller's ends. */
  ownerFor(caller: string | undefined): ConnectionOwner {
    if (this.#owner === undefined || this.#owner.caller !== caller) {
      this.#owner?.end();
      this.#owner = new ConnectionOwner(caller);
    }
    return this.#owner;
  }

  /** Reads no further until `resume`. */
  pause(): void {
    this.#onHold = true;
    this.socket.pause();
  }

  resume(stream: Http1DownstreamStream): void {
    if (!this.#onHold || this.#stage !== stream) return;
    this.#onHold = false;
    this.#resume();
  }

  /**
   * @param last whether the connection ends with it.
   * @param timeoutMs for the app to read what the system has not taken yet.
   */
  endResponse(stream: Http1DownstreamStream, last: boolean, timeoutMs: number): void {
    if (this.#stage !== stream) return;
    stream.afterResponse = last ? 'closed' : 'kept';
    this.writer.flush();
    if (this.socket.writableLength === 0) {
      this.#answerLeft(stream);
      return;
    }
    this.#deadline.set(this.#nowMs() + timeoutMs);
    this.socket.write('', (error) => {
      if (!error && !this.socket.destroyed) this.#answerLeft(stream);
    });
  }

  /** @returns the bytes already read. */
  takeOver(take: TakeBytes): Buffer | undefined {
    const ahead = this.#ahead;
    this.#ahead = undefined;
    if (this.#stage.kind === 'serving')
      this.#stage = { kind: 'tunnel', transaction: this.#stage.transaction };
    this.#take = take;
    this.#deadline.dispose();
    this.#endWatch?.();
    return ahead;
  }

  bytes(chunk: Buffer): void {
    this.#take(chunk);
  }

  ended(): void {
    this.#inputEnded = true;
    this.#onEnd();
  }

  drained(): void {
    if (this.#stage.kind === 'serving') this.#stage.transaction.onDownstreamDrain();
  }

  drain(): void {
    this.endsWithResponse = true;
    this.#successor?.drain();
  }

  closeIdle(): void {
    const successor = this.#successor;
    // After a half-close nothing comes that closing would answer with a reset.
    if (successor === undefined && this.#inputEnded && this.socket.writableLength === 0)
      this.socket.destroy();
    else if (successor === undefined) this.socket.destroySoon();
    else successor.closeIdle();
  }

  handOff(successor: ConnectionSuccessor): void {
    if (this.#stage.kind === 'tunnel') this.#stage = { kind: 'handed-off', successor };
  }

  /**
   * Cuts an answer, so that the app knows it is incomplete.
   * @param byReset if a proper close would mean that it is complete.
   */
  cut(byReset: boolean): void {
    if (byReset) cutOff(this.socket);
    else this.socket.destroy();
  }

  #onEnd(): void {
    const stage = this.#stage;
    if (stage.kind === 'tunnel' || stage.kind === 'handed-off') return;
    if (stage.kind !== 'serving') {
      this.closeIdle();
      return;
    }
    // The next request may have come before the end.
    if (stage.transaction.answered) return;
    // The request can never be whole.
    if (!stage.requestComplete && this.#ahead === undefined) this.socket.destroy();
    // The upstream must not go on working for a client that has left.
    else this.#endWatch ??= this.#context.peers.watch(this.socket, () => this.socket.destroy());
  }

  #onBytes(chunk: Buffer): void {
    if (this.#stage.kind === 'closing') return;
    if (this.#ahead === undefined) {
      this.#read(chunk);
      return;
    }
    this.#ahead = Buffer.concat([this.#ahead, chunk]);
    if (this.#ahead.length > AHEAD_BYTES) this.socket.pause();
  }

  #read(chunk: Buffer): void {
    let at = 0;
    this.#reading = true;
    try {
      while (at < chunk.length && !this.#onHold) {
        const next = this.#readOn(chunk, at);
        if (next === undefined) break;
        at = next;
      }
    } catch (error) {
      this.#refuse(error);
    }
    this.#reading = false;
    const stage = this.#stage;
    if (stage.kind === 'closing') return;
    if (at < chunk.length) {
      this.#ahead = Buffer.from(chunk.subarray(at));
      if (this.#onHold || this.#ahead.length > AHEAD_BYTES) this.socket.pause();
    }
    if (stage.kind === 'serving') stage.transaction.flushRequest();
    else if (isDraining(this.#context.load)) this.onFree();
  }

  /** Undefined if nothing is wanted now. */
  #readOn(chunk: Buffer, at: number): number | undefined {
    const stage = this.#stage;
    switch (stage.kind) {
      case 'idle':
      case 'head':
        return this.#readHead(chunk, at);
      case 'serving':
        return stage.body === undefined ? undefined : this.#readBody(stage, stage.body, chunk, at);
      case 'dropping':
        stage.body.read(chunk, at);
        if (stage.body.complete) this.#awaitNext(this.#nowMs());
        return stage.body.position;
      default:
        return undefined;
    }
  }

  #readHead(chunk: Buffer, at: number): number {
    const head = this.#heads.read(chunk, at);
    if (head === undefined) {
      if (this.#stage === IDLE && this.#heads.started) {
        this.#stage = HEAD;
        this.#deadline.set(this.#nowMs() + this.#context.snapshot().limits.headerTimeoutMs);
      }
      return chunk.length;
    }
    const next = this.#heads.position;
    this.#deadline.clear();
    const stream = new Http1DownstreamStream(this, this.#context, head, this.#nowMs());
    this.#stage = stream;
    stream.transaction.begin();
    return next;
  }

  #readBody(stage: Http1DownstreamStream, body: BodyDecoder, chunk: Buffer, at: number): number {
    const data = body.read(chunk, at);
    if (data !== undefined) stage.transaction.takeBody(data);
    if (body.complete) {
      stage.endBody(body.trailers);
    }
    return body.position;
  }

  #refuse(error: unknown): void {
    const cause = asProxyError(error);
    // All other errors are the app's to handle.
    if (cause.code === 'internal') logFailure(this.#context.log, 'none', cause);
    const stage = this.#stage;
    if (stage.kind === 'serving') {
      stage.body = undefined;
      if (stage.transaction.answered) stage.afterResponse = 'closed';
      else stage.transaction.fail(cause);
      return;
    }
    if (stage.kind === 'dropping') {
      this.#close();
      return;
    }
    const unread = { code: cause.code, protocol: 'http1', fields: [] } as const;
    const problem = turnedAway(this.#context, problemOf(cause), unread);
    this.writer.text(localReplyMessage(problem, '', true));
    this.writer.flush();
    this.#close();
  }

  #answerLeft({ transaction, body, afterResponse, isClientsLast }: Http1DownstreamStream): void {
    const nowMs = this.#nowMs();
    transaction.settle(nowMs);
    if (afterResponse === 'closed') this.#closeAfter(isClientsLast);
    else if (body === undefined) this.#awaitNext(nowMs);
    else {
      this.#stage = { kind: 'dropping', body };
      this.#deadline.set(nowMs + LINGER_MS);
    }
    this.#onHold = false;
    if (this.#reading) return;
    this.#resume();
    if (isDraining(this.#context.load) && !this.busy) this.onFree();
  }

  #awaitNext(nowMs: number): void {
    this.#stage = IDLE;
    this.#deadline.set(nowMs + this.#context.snapshot().limits.keepAliveTimeoutMs);
  }

  /**
   * After a client's last request nothing more is expected, so no reading on (RFC 9112 §9.6). TLS has to send its own
   * end.
   */
  #closeAfter(isClientsLast: boolean): void {
    const isOver = isClientsLast && !this.#reading && this.#ahead === undefined;
    if (!isOver || this.socket instanceof TLSSocket) this.#close();
    else this.socket.destroy();
  }

  #close(): void {
    this.#stage = CLOSING;
    this.#ahead = undefined;
    this.#deadline.set(this.#nowMs() + LINGER_MS);
    this.socket.end();
    this.socket.resume();
  }

  #resume(): void {
    const ahead = this.#ahead;
    if (ahead !== undefined) {
      this.#ahead = undefined;
      this.#read(ahead);
    }
    if (!this.#onHold && this.#ahead === undefined) this.socket.resume();
    if (this.#inputEnded) this.#onEnd();
  }

  tooLate(): void {
    switch (this.#stage.kind) {
      case 'head':
        if (this.socket.bytesRead === 0) this.socket.destroy();
        else this.#refuse(new SidecarError('bad_request', this.#slowHead()));
        break;
      case 'dropping':
        this.#close();
        break;
      case 'idle':
        this.closeIdle();
        break;
      default:
        this.socket.destroy();
    }
  }

  #slowHead(): string {
    return `the request head did not arrive within ${this.#context.snapshot().limits.headerTimeoutMs} ms`;
  }

  closed(): void {
    this.#endWatch?.();
    const stage = this.#stage;
    this.#stage = CLOSING;
    if (stage.kind === 'serving' || stage.kind === 'tunnel') stage.transaction.appGone();
    this.#owner?.end();
  }

  get #successor(): ConnectionSuccessor | undefined {
    return this.#stage.kind === 'handed-off' ? this.#stage.successor : undefined;
  }

  #nowMs(): number {
    return this.#context.clock.monotonicMs();
  }
}

type Stage =
  | { readonly kind: 'idle' }
  /** Part of a head has come, or the connection is new. */
  | { readonly kind: 'head' }
  | Http1DownstreamStream
  | { readonly kind: 'dropping'; readonly body: BodyDecoder }
  /** What comes is ignored. */
  | { readonly kind: 'closing' }
  /** The bytes belong to another protocol. */
  | { readonly kind: 'tunnel'; readonly transaction: Transaction }
  /** A tunnel whose request has been counted and is forgotten. */
  | { readonly kind: 'handed-off'; readonly successor: ConnectionSuccessor };

const IDLE: Stage = { kind: 'idle' };
const HEAD: Stage = { kind: 'head' };
const CLOSING: Stage = { kind: 'closing' };
