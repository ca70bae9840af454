import type { OnReadOpts, Socket } from 'node:net';
import type { Clock } from '../clock.ts';
import type { RouteConfig } from '../config/config.ts';
import { type ProxyErrorCode, SidecarError } from '../errors.ts';
import { Deadline } from './deadline.ts';
import { GatheredWriter } from './gathered-writer.ts';
import { type BodyDecoder, bodyDecoder } from './http1/body-decoder.ts';
import { frameResponse } from './http1/body-framing.ts';
import type { HeadLimits } from './http1/head-limits.ts';
import { type HeadReader, responseHeadReader } from './http1/head-reader.ts';
import type { ResponseHead } from './http1/response-head.ts';
import { reusableForMs } from './keep-alive.ts';
import { asProxyError } from './proxy-error.ts';
import { sharedRead, type TakeBytes } from './shared-read.ts';
import type { UpstreamFailures } from './upstream-failures.ts';
import type { UpstreamUser } from './upstream-user.ts';

/** Answers may carry larger heads than the app may send; cookies and policies do. */
const ANSWER_LIMITS: HeadLimits = { headerBytes: 128 * 1024, headerCount: 1000, targetBytes: 0 };

/** An unwanted answer is read to its end if that is near: a larger one costs more than a new connection does. */
const WORTH_READING_BYTES = 64 * 1024;
const WORTH_READING_MS = 1_000;

export interface UpstreamConnectionOptions {
  readonly route: RouteConfig;
  readonly clock: Clock;
  readonly failures: UpstreamFailures;
  connect(onread: OnReadOpts): Socket;
  /** Called when an answer has ended and another request may follow. */
  onReusable(connection: UpstreamConnection): void;
  onClosed(connection: UpstreamConnection): void;
}

const NOTHING = Buffer.alloc(0);

type Phase = 'connecting' | 'securing' | 'idle' | 'busy' | 'discarding' | 'given-up';

/** One connection to an upstream: a request at a time, and the answer to it. */
export class UpstreamConnection {
  readonly socket: Socket;
  readonly writer: GatheredWriter;
  readonly #options: UpstreamConnectionOptions;
  readonly #failures: UpstreamFailures;
  readonly #heads: HeadReader<ResponseHead> = responseHeadReader(ANSWER_LIMITS);
  readonly #deadline: Deadline;
  #phase: Phase = 'connecting';
  #user: UpstreamUser | undefined;
  #method = '';
  #reused = false;
  #requestWhole = false;
  #anyAnswer = false;
  #persistent = false;
  #reusableForMs = 0;
  /** Of the final answer, whose head has been passed. */
  #body: BodyDecoder | undefined;
  #ahead: Buffer | undefined;
  #take: TakeBytes = this.#onBytes;
  #onHold = false;
  #discardedBytes = 0;

  constructor(user: UpstreamUser, options: UpstreamConnectionOptions) {
    const socket = options.connect(sharedRead((chunk) => this.#take(chunk)));
    this.socket = socket;
    this.writer = new GatheredWriter(socket);
    this.#user = user;
    this.#options = options;
    this.#failures = options.failures;
    this.#deadline = new Deadline(options.clock, () => this.#tooLate());
    this.#deadline.set(this.#nowMs() + options.route.timeouts.connectMs);
    socket.once('connect', () => {
      if (options.route.upstream.protocol === 'http') this.#connected();
      else this.#phase = 'securing';
    });
    socket.once('secureConnect', () => this.#connected());
    socket.on('end', this.#onEnd);
    socket.on('drain', this.#onDrain);
    socket.on('error', (error) => this.#fail(this.#failures.of(error, this.#phase), true));
    socket.on('close', () => {
      this.#deadline.dispose();
      this.#fail(this.#failures.closed(), true);
      options.onClosed(this);
    });
  }

  /** Whether a request may be sent. */
  get ready(): boolean {
    return this.#phase === 'idle';
  }

  /** Lends an idle connection out again. */
  lend(user: UpstreamUser): void {
    this.#user = user;
    this.#reused = true;
  }

  /** Begins a request; what is written from here on is its head and body. */
  begin(method: string): void {
    this.#method = method;
    this.#phase = 'busy';
    this.#requestWhole = false;
    this.#anyAnswer = false;
  }

  /** Says that the request has been written whole: from now on the answer is due. */
  requestSent(nowMs: number): void {
    this.#requestWhole = true;
    const { responseMs, idleMs } = this.#options.route.timeouts;
    this.#deadline.set(nowMs + (this.#body === undefined ? responseMs : idleMs));
  }

  /** Says that bytes have moved, or that there was room for more. */
  touch(): void {
    if (this.#requestWhole && this.#body === undefined) return;
    this.#deadline.set(this.#nowMs() + this.#options.route.timeouts.idleMs);
  }

  /** Reads no further until `proceed`. */
  hold(): void {
    this.#onHold = true;
    this.#deadline.clear();
    this.socket.pause();
  }

  /** Goes on where `hold` stopped. */
  proceed(): void {
    const ahead = this.#ahead ?? NOTHING;
    this.#onHold = false;
    this.#ahead = undefined;
    this.#onBytes(ahead);
    if (!this.#onHold) this.socket.resume();
  }

  /** Lets the user go who does not want the rest of the answer; what is near its end is read to it, else cut. */
  discardAnswer(): void {
    if (!this.#requestWhole || !this.#persistent) {
      this.abandon();
      return;
    }
    this.#user = undefined;
    this.#phase = 'discarding';
    this.#discardedBytes = 0;
    this.#deadline.set(this.#nowMs() + WORTH_READING_MS);
    this.proceed();
  }

  /** Lets the user go, and cuts the connection. */
  abandon(): void {
    this.#user = undefined;
    this.#phase = 'given-up';
    this.writer.clear();
    this.socket.destroy();
  }

  /**
   * Gives the connection up as it is: bytes go to `take` from here on.
   * @returns those that came with the head.
   */
  takeOver(take: TakeBytes): Buffer | undefined {
    const { socket } = this;
    this.#user = undefined;
    this.#phase = 'given-up';
    this.#take = take;
    this.#deadline.dispose();
    socket.off('end', this.#onEnd);
    socket.off('drain', this.#onDrain);
    const ahead = this.#ahead;
    this.#ahead = undefined;
    return ahead;
  }

  readonly #onEnd = (): void => {
    try {
      if (this.#body === undefined) {
        this.#fail(this.#failures.closed(), true);
      } else {
        this.#persistent = false;
        this.#body.end();
        this.#endAnswer(this.#body);
      }
    } catch (error) {
      this.#fail(asProxyError(error), false);
    }
  };

  readonly #onDrain = (): void => {
    this.touch();
    this.#user?.upstreamReady();
  };

  #onBytes(chunk: Buffer): void {
    if (this.#onHold) {
      // TLS gives all that it has deciphered, on hold or not.
      this.#ahead = Buffer.concat([this.#ahead ?? NOTHING, chunk]);
      return;
    }
    try {
      this.#read(chunk);
    } catch (error) {
      this.#fail(asProxyError(error), false);
    }
  }

  #read(chunk: Buffer): void {
    // Whatever comes unasked is no answer to a request that is yet to be sent.
    if (this.#phase !== 'busy' && this.#phase !== 'discarding') {
      this.abandon();
      return;
    }
    this.#anyAnswer = true;
    let at = 0;
    while (!this.#paused(chunk, at)) {
      const body = this.#body;
      if (body?.complete) {
        // More than the answer is nothing that could be trusted to belong to the next one.
        if (at < chunk.length) this.#persistent = false;
        this.#endAnswer(body);
        return;
      }
      if (at === chunk.length) {
        if (this.#phase === 'busy') this.touch();
        this.#user?.flushAnswer();
        return;
      }
      if (body === undefined) {
        at = this.#readHead(chunk, at);
      } else {
        const data = body.read(chunk, at);
        at = body.position;
        if (data !== undefined) this.#pass(data);
      }
    }
  }

  /** Whether reading stops here, with the rest of the chunk kept if it is to go on later. */
  #paused(chunk: Buffer, at: number): boolean {
    if (this.#phase === 'given-up') return true;
    if (this.#onHold && at < chunk.length) this.#ahead = Buffer.from(chunk.subarray(at));
    return this.#onHold;
  }

  #readHead(chunk: Buffer, at: number): number {
    const head = this.#heads.read(chunk, at);
    if (head === undefined) return chunk.length;
    const next = this.#heads.position;
    const framing = frameResponse(head, this.#method);
    if (head.status === 101) {
      this.#ahead = next < chunk.length ? Buffer.from(chunk.subarray(next)) : undefined;
      this.#user?.switched(head);
      return chunk.length;
    }
    if (head.status < 200) {
      this.#user?.informed(head);
      return next;
    }
    if (framing.kind === 'tunnel') throw new SidecarError('internal', 'a CONNECT was sent as a request');
    this.#persistent = head.persistent;
    this.#reusableForMs = reusableForMs(head.fields);
    this.#body = bodyDecoder('response', framing, ANSWER_LIMITS);
    this.#user?.answered(head, framing);
    return next;
  }

  #pass(data: Buffer): void {
    if (this.#phase === 'busy') {
      this.#user?.answerData(data);
      return;
    }
    this.#discardedBytes += data.length;
    if (this.#discardedBytes > WORTH_READING_BYTES) this.abandon();
  }

  #endAnswer(body: BodyDecoder): void {
    const user = this.#user;
    this.#user = undefined;
    this.#body = undefined;
    if (this.#persistent && this.#requestWhole && this.#reusableForMs > 0) {
      this.#phase = 'idle';
      this.#deadline.set(this.#nowMs() + this.#reusableForMs);
      // An app that was too slow for this answer must not hold up the next one.
      this.socket.resume();
      this.#options.onReusable(this);
    } else {
      this.abandon();
    }
    // Last, because the user may begin the next request on this very connection.
    user?.answerEnded(body.trailers);
  }

  #connected(): void {
    this.#phase = 'idle';
    this.#deadline.clear();
    this.#user?.connected();
  }

  #fail(error: SidecarError<ProxyErrorCode>, byPeer: boolean): void {
    const user = this.#user;
    const unanswered = byPeer && this.#reused && !this.#anyAnswer;
    this.abandon();
    user?.upstreamFailed(error, unanswered);
  }

  #tooLate(): void {
    const { connectMs, responseMs } = this.#options.route.timeouts;
    switch (this.#phase) {
      case 'connecting':
      case 'securing':
        this.#fail(this.#failures.tooLate('connection', connectMs), false);
        break;
      case 'busy':
        if (!this.#requestWhole || this.#body !== undefined) this.#user?.stalled();
        else this.#fail(this.#failures.tooLate('answer', responseMs), false);
        break;
      default:
        this.abandon();
    }
  }

  #nowMs(): number {
    return this.#options.clock.monotonicMs();
  }
}
