import { type ProxyErrorCode, SidecarError } from '../../errors.ts';
import { type Fields, fieldValues, hasField } from '../http/fields.ts';
import type { BodyFraming } from '../http1/body-framing.ts';
import type { RequestHead } from '../http1/request-head.ts';
import type { ResponseHead } from '../http1/response-head.ts';
import { CHUNK_END, chunkStart, lastChunk, serializeResponseHead } from '../http1/serialize.ts';
import type { RouteMetrics } from '../metrics.ts';
import { asProxyError, logFailure } from '../proxy-error.ts';
import type { Destination } from '../routing/destination.ts';
import { destinationOf } from '../routing/find-destination.ts';
import type { AppSide } from './app-side.ts';
import { ConnectTunnel } from './connect-tunnel.ts';
import type { ExchangeContext } from './context.ts';
import { refuseCrossSite } from './cross-site-requests.ts';
import { Forwarding } from './forwarding.ts';
import { answerFields, hasPassed, informationFields } from './header-rules.ts';
import { isLastHop, lastHopAnswer } from './last-hop.ts';
import { problemMessage, problemOf } from './problem-answer.ts';
import { bodyTooLarge } from './request-body.ts';
import type { RequestService, ServedExchange } from './request-service.ts';

/** The app left before there was an answer; nginx's number, for the metric alone. */
const CLIENT_CLOSED_REQUEST = 499;

/** A refused request's body is read, to keep the connection, if no more than this can follow. */
const WORTH_DROPPING_BYTES = 64 * 1024;

/** How the answer's body is delimited for the app (RFC 9112 §6.3); `none` has none. */
type AnswerFraming = 'none' | 'length' | 'chunked' | 'close';

/** One request of the app and its answer: admitted, then answered, refused or cut, and counted exactly once. */
export class Exchange implements ServedExchange {
  readonly connection: AppSide;
  readonly head: RequestHead;
  /** When the request's head had come, on the monotonic clock. */
  readonly startedAtMs: number;
  readonly #context: ExchangeContext;
  #metrics: RouteMetrics;
  #service: RequestService | undefined;
  #framing: AnswerFraming = 'none';
  #status = CLIENT_CLOSED_REQUEST;
  #patienceMs: number;
  #inFlight = false;
  #requestWhole: boolean;
  #continued = false;
  #begun = false;
  #last = false;
  #answered = false;
  #over = false;
  #settled = false;

  constructor(connection: AppSide, context: ExchangeContext, head: RequestHead, nowMs: number) {
    this.connection = connection;
    this.head = head;
    this.startedAtMs = nowMs;
    this.#context = context;
    this.#metrics = context.noRoute;
    this.#patienceMs = context.limits.headerTimeoutMs;
    this.#requestWhole = !head.chunked && (head.contentLength ?? 0) === 0;
  }

  /** Whether there is nobody to answer any more, or nothing to add to the answer. */
  get over(): boolean {
    return this.#over;
  }

  /** Whether the answer has been written whole. */
  get answered(): boolean {
    return this.#answered;
  }

  /** Whether the head of the final answer has been written. */
  get begun(): boolean {
    return this.#begun;
  }

  /** Whether the app has sent its request whole. */
  get requestWhole(): boolean {
    return this.#requestWhole;
  }

  /** Whether the client waits for 100 before it sends the body. */
  get awaitsContinue(): boolean {
    if (this.#requestWhole || this.#continued || this.head.minorVersion === 0) return false;
    return fieldValues(this.head.fields, 'expect').some((value) => value.toLowerCase() === '100-continue');
  }

  /** Serves the request. Every end of it, good or bad, is on this exchange; nothing is thrown. */
  begin(): void {
    try {
      const destination = this.#admit();
      if (isLastHop(this.head)) {
        this.#answerWith(200, false, (last) => lastHopAnswer(this.head, last));
        return;
      }
      const Service = destination.tunnel ? ConnectTunnel : Forwarding;
      this.#service = new Service(this, this.#context, destination);
      this.#service.begin();
    } catch (error) {
      const refusal = asProxyError(error);
      // The others are the app's to see to, and counted.
      if (refusal.code === 'internal') logFailure(this.#context.log, 'none', refusal);
      this.fail(refusal);
    }
  }

  /** @throws {SidecarError} `request_too_large`. */
  takeBody(slice: Buffer): void {
    if (!this.#over) this.#service?.body?.take(slice);
  }

  endBody(trailers: Fields): void {
    this.#requestWhole = true;
    if (!this.#over) this.#service?.body?.end(trailers, this.#nowMs());
  }

  /** Sends upstream what was taken. */
  flushRequest(): void {
    if (!this.#over) this.#service?.flushRequest();
  }

  /** The app's connection takes more of the answer. */
  appReady(): void {
    if (!this.#over) this.#service?.appReady();
  }

  /** The app's connection is closed. */
  appGone(): void {
    this.#end();
    this.settle(this.#nowMs());
  }

  /** Passes an informational answer (RFC 9110 §15.2) to a client that understands it, 100 only if it was asked for. */
  inform(head: ResponseHead): void {
    if (this.#begun || this.head.minorVersion === 0) return;
    if (head.status === 100) {
      if (!this.awaitsContinue) return;
      this.#continued = true;
    }
    const { writer } = this.connection;
    writer.text(serializeResponseHead(head.status, head.reason, informationFields(head)));
    writer.flush();
  }

  /** Begins the final answer, and passes its head on with the next flush. */
  beginAnswer(head: ResponseHead, framing: BodyFraming): void {
    this.#framing = this.#framingFor(head.status, framing);
    const fields = answerFields(head, { status: head.status, chunked: this.#framing === 'chunked' });
    // Whether the body follows after a final answer without 100 is the client's choice: nothing else can (RFC 9110 §10.1.1).
    this.#last = this.#mustClose() || this.#framing === 'close' || this.awaitsContinue;
    if (this.#last) fields.push('connection', 'close');
    const text = serializeResponseHead(head.status, head.reason, fields);
    this.#begun = true;
    this.#status = head.status;
    this.connection.writer.text(text);
  }

  answerData(slice: Buffer): void {
    const { writer } = this.connection;
    switch (this.#framing) {
      case 'none':
        break;
      case 'chunked':
        writer.text(chunkStart(slice.length));
        writer.bytes(slice);
        writer.text(CHUNK_END);
        break;
      default:
        writer.bytes(slice);
    }
  }

  /** Says whether the app keeps up; if not, `RequestService.appReady` is called once it does. */
  flushAnswer(): boolean {
    return this.connection.writer.flush();
  }

  endAnswer(trailers: Fields): void {
    if (this.#framing === 'chunked') this.connection.writer.text(lastChunk(trailers));
    this.#answered = true;
    this.#over = true;
    this.connection.endAnswer(this.#last, this.#patienceMs);
  }

  /** Answers with the problem that `error` is; if an answer has begun, cuts it. */
  fail(error: SidecarError<ProxyErrorCode>): void {
    if (this.#over) return;
    this.#metrics.error(error.code);
    if (this.#begun) {
      this.cut();
      return;
    }
    const problem = problemOf(error);
    this.connection.writer.clear();
    this.#answerWith(problem.status, problem.closes, (last) =>
      problemMessage(problem, this.head.method, last),
    );
  }

  /** Ends the exchange without a proper end of the answer, by which the app knows that it is not whole. */
  cut(): void {
    if (this.#over) return;
    this.#end();
    this.connection.writer.flush();
    this.connection.cut(this.#framing === 'close');
  }

  /** The connection has become a tunnel by an answer of `status`; it is answered when that closes. */
  becomeTunnel(status: 101 | 200): void {
    this.#begun = true;
    this.#status = status;
  }

  /** Counts the request; called when its answer has left, or nothing of it will any more. */
  settle(nowMs: number): void {
    if (this.#settled) return;
    this.#settled = true;
    const durationMs = nowMs - this.startedAtMs;
    const { method } = this.head;
    if (!this.#inFlight) {
      this.#metrics.refused(method, this.#status, durationMs);
      return;
    }
    this.#context.load.inFlight -= 1;
    this.#metrics.ended(method, this.#status, durationMs);
  }

  /** Decides whether the request may go on, and where to, before anything is spent on it. */
  #admit(): Destination {
    const { head } = this;
    const { limits, load, instanceId, ownNames } = this.#context;
    if (load.draining) throw new SidecarError('draining', 'the sidecar takes no new requests');
    if (hasPassed(head.fields, instanceId)) {
      throw new SidecarError('loop_detected', 'the request has already passed this sidecar');
    }
    const destination = destinationOf(head, this.#context);
    const { config, metrics } = destination.route;
    this.#metrics = metrics;
    this.#patienceMs = config.timeouts.idleMs;
    if (ownNames !== undefined) refuseCrossSite(head, destination, ownNames);
    if (config.existingAuthorization === 'reject' && hasField(head.fields, 'authorization')) {
      throw new SidecarError(
        'authorization_not_allowed',
        `route ${config.name} takes no request that has Authorization`,
      );
    }
    const { requestBodyBytes, maxInFlight } = limits;
    if (requestBodyBytes > 0 && (head.contentLength ?? 0) > requestBodyBytes) {
      throw bodyTooLarge(requestBodyBytes);
    }
    if (load.inFlight >= maxInFlight) {
      throw new SidecarError('overloaded', `${maxInFlight} requests are in flight`);
    }
    this.#inFlight = true;
    load.inFlight += 1;
    metrics.started();
    return destination;
  }

  #framingFor(status: number, framing: BodyFraming): AnswerFraming {
    if (framing.kind === 'none' || status === 205) return 'none';
    if (framing.kind === 'length') return 'length';
    return this.head.minorVersion === 1 ? 'chunked' : 'close';
  }

  #mustClose(): boolean {
    return !this.head.persistent || this.#context.load.draining;
  }

  #isWorthDropping(): boolean {
    if (this.#requestWhole) return true;
    return (
      !this.head.chunked && (this.head.contentLength ?? 0) <= WORTH_DROPPING_BYTES && !this.awaitsContinue
    );
  }

  /** An answer of the proxy's own. */
  #answerWith(status: number, closes: boolean, message: (last: boolean) => string): void {
    this.#end();
    this.#answered = true;
    this.#status = status;
    const last = closes || this.#mustClose() || !this.#isWorthDropping();
    this.connection.writer.text(message(last));
    this.connection.endAnswer(last, this.#patienceMs);
  }

  #end(): void {
    this.#over = true;
    this.#service?.release();
  }

  #nowMs(): number {
    return this.#context.clock.monotonicMs();
  }
}
