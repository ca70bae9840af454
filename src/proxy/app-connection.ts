import type { Socket } from 'node:net';
import { SidecarError } from '../errors.ts';
import type { ProxyContext } from './context.ts';
import { Deadline } from './deadline.ts';
import { Exchange } from './exchange.ts';
import { GatheredWriter } from './gathered-writer.ts';
import { type BodyDecoder, bodyDecoder } from './http1/body-decoder.ts';
import { type HeadReader, requestHeadReader } from './http1/head-reader.ts';
import type { RequestHead } from './http1/request-head.ts';
import { isHeldByPeer } from './peer-socket.ts';
import { problemMessage, problemOf } from './problem.ts';
import { asProxyError } from './proxy-error.ts';
import { acceptShared, type TakeBytes } from './shared-read.ts';

/** How long a connection that is to close goes on being read: closing at once could reset the answer away (RFC 9112 §9.6). */
const LINGER_MS = 1_000;

/** How often it is looked whether a client that has ended its side is still there for its answer. */
const LOOK_MS = 1_000;

/** How much of pipelined requests is kept while an earlier one is served; then the client waits. */
const AHEAD_BYTES = 16 * 1024;

type Phase =
  /** Between requests: nothing of the next one has come. */
  | 'idle'
  /** Part of a head has come, or the connection is new. */
  | 'head'
  /** A request is being read or served. */
  | 'busy'
  /** Answered; the rest of the request's body is read and dropped. */
  | 'dropping'
  /** Nothing that comes now is looked at. */
  | 'closing'
  /** The bytes are those of another protocol, and somebody else's. */
  | 'tunnel';

/**
 * One connection from the app. Requests are served one after another, so that pipelined ones are answered in order;
 * a client that does not read its answers is not served the next one. A client that has ended its side of the connection
 * gets the answers to what it sent, as long as it is there to read them.
 */
export class AppConnection {
  readonly socket: Socket;
  readonly writer: GatheredWriter;
  readonly #context: ProxyContext;
  readonly #onFree: () => void;
  readonly #heads: HeadReader<RequestHead>;
  readonly #deadline: Deadline;
  #phase: Phase = 'head';
  #exchange: Exchange | undefined;
  /** Of the request that is being read; undefined once it has been read whole. */
  #body: BodyDecoder | undefined;
  /** Bytes that came before anybody wanted them. */
  #ahead: Buffer | undefined;
  #take: TakeBytes = this.#onBytes;
  #onHold = false;
  #reading = false;
  #cancelLook: (() => void) | undefined;
  /** Whether the answer in progress, once it has been handed over, is the last one. */
  #last = false;

  /** `onFree` is called whenever a request is settled. */
  constructor(accepted: Socket, context: ProxyContext, onFree: () => void) {
    const socket = acceptShared(accepted, (chunk) => this.#take(chunk));
    this.socket = socket;
    this.writer = new GatheredWriter(socket);
    this.#context = context;
    this.#onFree = onFree;
    this.#heads = requestHeadReader(context.limits);
    this.#deadline = new Deadline(context.clock, () => this.#tooLate());
    this.#deadline.set(this.#nowMs() + context.limits.headerTimeoutMs);
    socket.on('end', this.#onEnd);
    socket.on('drain', this.#onDrain);
    // Whatever ends a connection ends in 'close'; the error itself is of no use to anyone.
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.#closed());
  }

  /** Whether a request is being served. */
  get busy(): boolean {
    return this.#exchange !== undefined;
  }

  /** Reads no further until `proceed`. */
  hold(): void {
    this.#onHold = true;
    this.socket.pause();
  }

  /** Goes on where `hold` stopped. */
  proceed(): void {
    if (!this.#onHold) return;
    this.#onHold = false;
    this.#resume();
  }

  /**
   * Says that the exchange's answer has been written whole.
   * @param last whether the connection ends with it.
   * @param patienceMs how long the app may take to read what the system has not taken yet.
   */
  endAnswer(last: boolean, patienceMs: number): void {
    this.#last = last;
    this.writer.flush();
    if (this.socket.writableLength === 0) {
      this.#answerLeft();
      return;
    }
    this.#deadline.set(this.#nowMs() + patienceMs);
    this.socket.write('', (error) => {
      if (!error && !this.socket.destroyed) this.#answerLeft();
    });
  }

  /**
   * Gives the connection up as it is: bytes go to `take` from here on.
   * @returns those that came already.
   */
  takeOver(take: TakeBytes): Buffer | undefined {
    const { socket } = this;
    const ahead = this.#ahead;
    this.#ahead = undefined;
    this.#phase = 'tunnel';
    this.#take = take;
    this.#deadline.dispose();
    socket.off('end', this.#onEnd);
    socket.off('drain', this.#onDrain);
    return ahead;
  }

  /** Closes a connection on which no request is being served, once what was written has left. */
  closeIdle(): void {
    this.socket.destroySoon();
  }

  /**
   * Ends the connection amid an answer, by which the app knows that it is not whole.
   * @param byReset where a proper end would say that it is.
   */
  cut(byReset: boolean): void {
    if (byReset) this.socket.resetAndDestroy();
    else this.socket.destroy();
  }

  readonly #onEnd = (): void => {
    // An answer that was handed over whole is still delivered. A request that is not whole now never will be.
    if (this.#exchange === undefined || this.#exchange.answered) this.closeIdle();
    else if (this.#exchange.requestWhole) this.#serveIfHeld();
    else this.socket.destroy();
  };

  /** For a client that has left, the upstream is not to go on working. */
  readonly #serveIfHeld = (): void => {
    if (!isHeldByPeer(this.socket)) this.socket.destroy();
    else this.#cancelLook = this.#context.clock.after(LOOK_MS, this.#serveIfHeld);
  };

  readonly #onDrain = (): void => {
    this.#exchange?.appReady();
  };

  #onBytes(chunk: Buffer): void {
    if (this.#phase === 'closing') return;
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
      while (at < chunk.length && this.#wantsBytes()) {
        at = this.#body === undefined ? this.#readHead(chunk, at) : this.#readBody(this.#body, chunk, at);
      }
    } catch (error) {
      this.#refuse(error);
    }
    this.#reading = false;
    if (this.#phase === 'closing') return;
    if (at < chunk.length) {
      this.#ahead = Buffer.from(chunk.subarray(at));
      if (this.#onHold || this.#ahead.length > AHEAD_BYTES) this.socket.pause();
    }
    this.#exchange?.flushRequest();
  }

  #wantsBytes(): boolean {
    if (this.#onHold || this.#phase === 'closing') return false;
    return this.#body !== undefined || this.#exchange === undefined;
  }

  #readHead(chunk: Buffer, at: number): number {
    const head = this.#heads.read(chunk, at);
    if (head === undefined) {
      if (this.#phase === 'idle' && this.#heads.started) {
        this.#phase = 'head';
        this.#deadline.set(this.#nowMs() + this.#context.limits.headerTimeoutMs);
      }
      return chunk.length;
    }
    const next = this.#heads.position;
    this.#phase = 'busy';
    this.#deadline.clear();
    const { framing } = head;
    if (framing.kind === 'length' || framing.kind === 'chunked') {
      const body = bodyDecoder('request', framing, this.#context.limits);
      if (!body.complete) this.#body = body;
    }
    const exchange = new Exchange(this, this.#context, head, this.#nowMs());
    this.#exchange = exchange;
    exchange.begin();
    return next;
  }

  #readBody(body: BodyDecoder, chunk: Buffer, at: number): number {
    const data = body.read(chunk, at);
    if (data !== undefined) this.#exchange?.takeBody(data);
    if (body.complete) {
      this.#body = undefined;
      if (this.#exchange !== undefined) this.#exchange.endBody(body.trailers);
      else if (this.#phase === 'dropping') this.#awaitNext(this.#nowMs());
    }
    return body.position;
  }

  /** Bytes that are no request, or part of one that cannot be read on. */
  #refuse(error: unknown): void {
    this.#body = undefined;
    const cause = asProxyError(error);
    if (this.#exchange !== undefined) {
      this.#exchange.fail(cause);
      return;
    }
    if (this.#phase === 'dropping') {
      this.#close();
      return;
    }
    const { noRoute } = this.#context;
    const problem = problemOf(cause);
    noRoute.error(cause.code);
    noRoute.refused('', problem.status, 0);
    this.writer.text(problemMessage(problem, '', true));
    this.writer.flush();
    this.#close();
  }

  #answerLeft(): void {
    const nowMs = this.#nowMs();
    this.#exchange?.settle(nowMs);
    this.#exchange = undefined;
    if (this.#last) this.#close();
    else if (this.#body === undefined) this.#awaitNext(nowMs);
    else {
      this.#phase = 'dropping';
      this.#deadline.set(nowMs + LINGER_MS);
    }
    if (this.#context.load.draining) this.#onFree();
    this.#onHold = false;
    if (this.#reading) return;
    this.#resume();
    if (this.socket.readableEnded && this.#exchange === undefined) this.closeIdle();
  }

  #awaitNext(nowMs: number): void {
    this.#phase = 'idle';
    this.#deadline.set(nowMs + this.#context.limits.keepAliveTimeoutMs);
  }

  /** Says all is said, and goes on reading for a while. */
  #close(): void {
    this.#phase = 'closing';
    this.#body = undefined;
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
  }

  #tooLate(): void {
    switch (this.#phase) {
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
    return `the request head did not arrive within ${this.#context.limits.headerTimeoutMs} ms`;
  }

  #closed(): void {
    this.#deadline.dispose();
    this.#cancelLook?.();
    const exchange = this.#exchange;
    this.#exchange = undefined;
    exchange?.appGone();
  }

  #nowMs(): number {
    return this.#context.clock.monotonicMs();
  }
}
