import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Clock } from '../clock.ts';
import { type ProxyErrorCode, SidecarError } from '../errors.ts';
import { type AppConnection, LINGER_MS } from './app-connection.ts';
import { type Fields, informationFields } from './header-rules.ts';
import type { RouteMetrics } from './metrics.ts';
import { problemOf } from './problem.ts';

/** The app left before there was an answer; nginx's number, for the metric alone. */
const CLIENT_CLOSED_REQUEST = 499;

/** Requests in flight over all connections, and whether new ones are taken. */
export interface ProxyLoad {
  inFlight: number;
  draining: boolean;
}

/** One request of the app and its answer: how it is answered, cut, and counted, exactly once. */
export class Exchange {
  readonly connection: AppConnection;
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly #clock: Clock;
  readonly #load: ProxyLoad;
  readonly #startedAtMs: number;
  readonly #onAborted: (() => void)[] = [];
  #metrics: RouteMetrics;
  #inFlight = false;
  #counted = false;
  #gone = false;
  #switched = false;
  #cutWhenFirst = false;
  #continued = false;
  #refused = false;
  #endsWithConnection = false;

  constructor(
    connection: AppConnection,
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    context: { readonly clock: Clock; readonly load: ProxyLoad; readonly noRoute: RouteMetrics },
  ) {
    this.connection = connection;
    this.incoming = incoming;
    this.outgoing = outgoing;
    this.#clock = context.clock;
    this.#load = context.load;
    this.#metrics = context.noRoute;
    this.#startedAtMs = context.clock.now().monotonicMs;
    connection.begin(this);
    outgoing.on('close', () => this.#answered());
    outgoing.on('error', () => this.cut());
    incoming.on('end', () => this.#settleIfDone());
    incoming.on('error', () => this.cut());
  }

  /** Whether there is nobody to answer any more, or nothing to add to the answer. */
  get over(): boolean {
    return this.#counted || this.#gone || this.#refused || this.#cutWhenFirst;
  }

  /** Calls `release` if the exchange ends other than by the upstream's answer: refused, cut, or left by the app. */
  onAborted(release: () => void): void {
    if (this.#gone || this.#cutWhenFirst) release();
    else this.#onAborted.push(release);
  }

  /** The request has a route and counts as in flight. */
  admit(metrics: RouteMetrics): void {
    this.attribute(metrics);
    this.#inFlight = true;
    this.#load.inFlight += 1;
    metrics.started();
  }

  /** Counts the request for this route from here on. */
  attribute(metrics: RouteMetrics): void {
    this.#metrics = metrics;
  }

  /** Answers with the problem that `error` is; if an answer has begun, cuts it. */
  refuse(error: SidecarError<ProxyErrorCode>): void {
    if (this.over) return;
    this.#refused = true;
    this.#metrics.error(error.code);
    this.#release();
    if (this.outgoing.headersSent) {
      this.cut();
      return;
    }
    const problem = problemOf(error);
    const { incoming, outgoing } = this;
    if (problem.closes || this.#load.draining) this.closeAfterAnswer();
    this.writeHead(problem.status, undefined, problem.fields);
    incoming.resume();
    if (incoming.complete || !problem.closes) {
      outgoing.end(problem.body);
      return;
    }
    // Content-length ends the answer for the app; the connection stays a while for what it is still sending.
    outgoing.write(problem.body);
    const end = (): void => {
      cancel();
      outgoing.end();
    };
    const cancel = this.#clock.after(LINGER_MS, end);
    incoming.on('end', end);
    this.onAborted(cancel);
  }

  /** The request body turned out not to be validly framed; more bytes of it may follow that are not, either. */
  bodyBroke(): void {
    if (this.#refused) return;
    if (this.over) this.cut();
    else this.refuse(new SidecarError('bad_request', 'the request body is not validly framed'));
  }

  /** Passes an informational answer (RFC 9110 §15.2) to a client that understands it, 100 only if it was asked for, once. */
  inform(status: number, fields: Fields): void {
    const { incoming, outgoing } = this;
    if (this.over || outgoing.headersSent || incoming.httpVersion !== '1.1') return;
    if (status === 100) {
      if (!this.expectsContinue || this.#continued) return;
      this.#continued = true;
      outgoing.writeContinue();
      return;
    }
    writeInformation(outgoing, status, informationFields(fields));
  }

  /**
   * Begins the final answer; the reason phrase is the status's own where undefined.
   * @throws {Error} when Node does not take a field or the phrase; nothing has been sent then.
   */
  writeHead(status: number, reason: string | undefined, fields: Fields): void {
    const { incoming, outgoing } = this;
    // Whether the body follows after a final answer without 100 is the client's choice: nothing else can (RFC 9110 §10.1.1).
    if (this.expectsContinue && !this.#continued && !incoming.complete) this.closeAfterAnswer();
    // HTTP/1.1 connections persist unsaid; without this Node says so, and how long, in fields of its own.
    if (incoming.httpVersion === '1.1' && outgoing.shouldKeepAlive) outgoing.removeHeader('connection');
    outgoing.writeHead(status, reason ?? STATUS_CODES[status] ?? '', [...fields]);
  }

  /** Whether the client waits for 100 before it sends the body. */
  get expectsContinue(): boolean {
    return (
      this.incoming.httpVersion === '1.1' && this.incoming.headers.expect?.toLowerCase() === '100-continue'
    );
  }

  /** The connection ends with this answer. */
  closeAfterAnswer(): void {
    this.outgoing.shouldKeepAlive = false;
    this.connection.close();
  }

  /** The answer is delimited by the connection's end, so that a proper end would say that it is whole. */
  delimitByClose(): void {
    this.#endsWithConnection = true;
  }

  /** The connection has become a tunnel; it is answered when that closes. */
  switchedProtocols(): void {
    this.#switched = true;
  }

  /**
   * Ends the exchange without a proper end of the answer, by which the app knows that it is not whole. An answer
   * that is delimited by the connection's end needs a reset for that.
   */
  cut(): void {
    if (this.#gone || this.#cutWhenFirst) return;
    if (this.outgoing.writableFinished && this.incoming.complete) return;
    if (!this.connection.isFirst(this)) {
      this.#cutWhenFirst = true;
      this.connection.close();
      this.#release();
      return;
    }
    const { socket } = this.connection;
    if (this.#endsWithConnection) socket.resetAndDestroy();
    else socket.destroy();
  }

  /** Called by the connection when every earlier request is settled. */
  becameFirst(): void {
    if (!this.#cutWhenFirst) return;
    this.connection.socket.destroy();
  }

  /** Called by the connection when it is closed. */
  connectionClosed(): void {
    if (!this.#gone) {
      this.#gone = true;
      this.#release();
    }
    this.#count();
    this.connection.settle(this);
  }

  #answered(): void {
    this.#count();
    this.#settleIfDone();
  }

  #settleIfDone(): void {
    if (this.#counted && this.incoming.complete && !this.#switched) this.connection.settle(this);
  }

  #release(): void {
    for (const release of this.#onAborted.splice(0)) release();
  }

  #count(): void {
    if (this.#counted) return;
    this.#counted = true;
    const durationMs = this.#clock.now().monotonicMs - this.#startedAtMs;
    const method = this.incoming.method ?? '';
    if (!this.#inFlight) {
      this.#metrics.refused(method, this.#status(), durationMs);
      return;
    }
    this.#load.inFlight -= 1;
    this.#metrics.ended(method, this.#status(), durationMs);
  }

  #status(): number {
    if (this.#switched) return 101;
    return this.outgoing.headersSent ? this.outgoing.statusCode : CLIENT_CLOSED_REQUEST;
  }
}

/**
 * Node 24 has public methods for some informational answers only, each with its own idea of fields; this is what
 * they are made of, and what keeps pipelined answers in order.
 */
function writeInformation(outgoing: ServerResponse, status: number, fields: Fields): void {
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n`;
  for (let index = 0; index < fields.length; index += 2) head += `${fields[index]}: ${fields[index + 1]}\r\n`;
  (outgoing as unknown as { _writeRaw(data: string, encoding: string): void })._writeRaw(
    `${head}\r\n`,
    'latin1',
  );
}
