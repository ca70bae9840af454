import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import type { RouteConfig } from '../../config/config.ts';
import { type ProxyErrorCode, SidecarError } from '../../platform/errors.ts';
import type { GrpcStatus } from '../../platform/grpc-status.ts';
import { type Fields, octetsOf } from '../http/fields.ts';
import { givenRequestId, isGrpcCall, REQUEST_ID_FIELD, traceContextOf } from '../http/messages.ts';
import { CLIENT_CLOSED_REQUEST, type RequestRecorder, type RouteObserver } from '../observer.ts';
import { asProxyError, type FailedRequest, logFailedRequest } from '../proxy-error.ts';
import type { Destination } from '../routing/routes.ts';
import type {
  DownstreamStream,
  IncomingRequest,
  LocalReply,
  ResponseBody,
  ResponseHead,
} from '../streams/contract.ts';
import type { AdmittedCaller, Authorizer, IdentifiedCaller } from './authorizer.ts';
import type { ConfigSnapshot } from './config-snapshot.ts';
import { ConnectTunnel } from './connect-tunnel.ts';
import { Forwarding } from './forwarding.ts';
import type { ListenerContext, RequestService } from './listener-context.ts';
import { countedDown, grpcStatusOf, lastHopAnswer, localReplyFor } from './local-reply.ts';

type Progress =
  /** No final answer yet. */
  | 'waiting'
  | 'answering'
  /** The answer has been written whole. */
  | 'answered'
  /** The app left, or its answer was cut. */
  | 'broken-off';

export class Transaction {
  readonly stream: DownstreamStream;
  request: IncomingRequest;
  /** When the head was complete, on the monotonic clock. */
  readonly startedAtMs: number;
  readonly isGrpc: boolean;
  readonly recorder: RequestRecorder | undefined;
  readonly #context: ListenerContext;
  /** With the caller's proof of identity. */
  readonly #arrived: IncomingRequest;
  #caller: AdmittedCaller | undefined;
  #observer: RouteObserver;
  #route: RouteConfig | undefined;
  /** Generated on first use unless the app gave one. */
  #requestId: string | undefined;
  #service: RequestService | undefined;
  #snapshot: ConfigSnapshot | undefined;
  #progress: Progress = 'waiting';
  #counted: 'nowhere' | 'in-flight' | 'ended' = 'nowhere';
  /** Of the answer to the app; undefined for good if the app left first. */
  #status: number | undefined;
  #grpcStatus: GrpcStatus | undefined;
  #timeoutMs: number;

  constructor(stream: DownstreamStream, context: ListenerContext, request: IncomingRequest, nowMs: number) {
    this.stream = stream;
    this.request =
      context.authorizer === undefined ? request : context.authorizer.withoutCredentials(request);
    this.#arrived = request;
    this.startedAtMs = nowMs;
    this.isGrpc = isGrpcCall(request);
    this.#context = context;
    this.#observer = context.noRoute;
    const { limits, record } = context.snapshot();
    this.#timeoutMs = limits.headerTimeoutMs;
    this.recorder = record(this.request);
  }

  /** Whether nothing more can be answered. */
  get over(): boolean {
    return this.#progress === 'answered' || this.#progress === 'broken-off';
  }

  get answered(): boolean {
    return this.#progress === 'answered';
  }

  /** Undefined where callers are not told apart. */
  get caller(): string | undefined {
    return this.#caller?.key;
  }

  get heldBytes(): number {
    return octetsOf(this.#arrived.fields) + (this.#service?.heldBytes ?? 0);
  }

  get upstreamSocket(): Socket | undefined {
    return this.#service?.upstreamSocket;
  }

  get begun(): boolean {
    return this.#progress !== 'waiting';
  }

  /** Serves the request; throws nothing. */
  begin(): void {
    try {
      const { authorizer } = this.#context;
      for (const rule of this.#context.snapshot().admission.onArrival) rule(this.request, this.#context);
      if (authorizer === undefined || this.#letIn(authorizer)) this.#serve();
    } catch (error) {
      this.#refuse(error);
    }
  }

  /** @throws {SidecarError} `request_too_large`. */
  takeBody(slice: Buffer): void {
    if (this.over) return;
    this.#service?.body?.take(slice);
    if (this.recorder !== undefined) this.recorder.bytes.fromApp += slice.length;
  }

  endBody(trailers: Fields): void {
    if (!this.over) this.#service?.body?.end(trailers, this.#context.clock.monotonicMs());
  }

  flushRequest(): void {
    if (!this.over) this.#service?.flushRequest();
  }

  onDownstreamDrain(): void {
    if (!this.over) this.#service?.onDownstreamDrain();
  }

  appGone(): void {
    // A drain whose time is up closes the connection itself. A CONNECT whose TLS ends here has been counted already.
    const isUnderWay = !this.over && this.#counted !== 'ended';
    if (isUnderWay && this.#context.load.phase === 'cutting') {
      const cut = new SidecarError('draining', 'the time of the drain was up');
      this.#log(cut, { status: this.#status ?? CLIENT_CLOSED_REQUEST });
      this.#countFailure(cut.code);
    } else if (isUnderWay && this.#service?.sentBy !== undefined) this.#caller?.brokeOff();
    this.#breakOff();
    this.settle(this.#context.clock.monotonicMs());
  }

  inform(head: ResponseHead): void {
    if (!this.begun) this.stream.sendInterim(head);
  }

  beginResponse(head: ResponseHead, body: ResponseBody): void {
    this.stream.respond(head, body);
    this.#progress = 'answering';
    this.#status = head.status;
    if (this.isGrpc && body === 'none') this.#grpcStatus = grpcStatusOf(head.fields);
  }

  endResponse(trailers: Fields): void {
    this.#progress = 'answered';
    if (this.isGrpc) this.#grpcStatus ??= grpcStatusOf(trailers);
    this.stream.end(trailers, this.#timeoutMs);
  }

  fail(error: SidecarError<ProxyErrorCode>): void {
    if (this.over) return;
    this.#countFailure(error.code);
    if (this.begun) this.#cut(error);
    else this.#answerWith(localReplyFor(error, this.isGrpc));
  }

  /** The id shared by the app, the log and the trace: the app's own, or a generated one. */
  identify(): string {
    this.#requestId ??= this.recorder?.requestId ?? givenRequestId(this.request.fields) ?? randomUUID();
    return this.#requestId;
  }

  /** The log line quotes nothing of the request's contents. */
  report(error: SidecarError<ProxyErrorCode>): void {
    if (this.#status !== undefined) {
      this.#log(error, { status: this.#status });
      return;
    }
    const { status, fields } = localReplyFor(error, this.isGrpc);
    this.#log(error, { status, grpcStatus: grpcStatusOf(fields) });
  }

  /** @param answered what the app got, or is about to get. */
  #log(error: SidecarError<ProxyErrorCode>, answered: Pick<FailedRequest, 'status' | 'grpcStatus'>): void {
    const { request, recorder } = this;
    const trace = recorder === undefined ? traceContextOf(request.fields) : recorder.trace;
    const failed = {
      route: this.#route?.name ?? 'none',
      upstream: this.#route?.upstream.authority,
      method: request.method,
      ...answered,
      durationMs: Math.round(this.#context.clock.monotonicMs() - this.startedAtMs),
      requestId: this.identify(),
      traceId: trace?.traceId,
      spanId: trace?.spanId,
    };
    logFailedRequest(this.#context.log, failed, error);
  }

  /** The transaction is answered once the tunnel closes. */
  beginTunnel(status: 101 | 200): void {
    this.#progress = 'answering';
    this.#status = status;
  }

  /**
   * Counts the request, once its answer has left or never will.
   * @param nowMs on the monotonic clock.
   */
  settle(nowMs: number): void {
    const before = this.#counted;
    if (before === 'ended') return;
    this.#counted = 'ended';
    this.#caller?.leave();
    const durationMs = nowMs - this.startedAtMs;
    if (this.isGrpc) this.#observer.grpcEnded(this.#grpcStatus);
    this.recorder?.ended({
      status: this.#status,
      grpcStatus: this.#grpcStatus,
      durationMs,
      upstreamProtocol: this.#service?.sentBy,
    });
    const counted = this.#status ?? CLIENT_CLOSED_REQUEST;
    if (before === 'nowhere') {
      this.#observer.refused(this.request, counted, durationMs);
      return;
    }
    this.#context.load.inFlight -= 1;
    this.#snapshot?.ended();
    this.#observer.ended(this.request, counted, durationMs, this.#service?.sentBy, this.recorder?.sampled);
  }

  #countFailure(code: ProxyErrorCode): void {
    this.#observer.error(code);
    this.recorder?.failed(code);
  }

  #serve(): void {
    const destination = this.#admit();
    const fields = countedDown(this.request);
    if (fields === undefined) {
      this.#answerWith(lastHopAnswer(this.request));
      return;
    }
    if (fields !== this.request.fields) this.request = { ...this.request, fields };
    this.#service = this.#serviceFor(destination);
    this.#service.begin();
  }

  #refuse(error: unknown): void {
    const refusal = asProxyError(error);
    // All other errors are the app's to handle.
    if (refusal.code === 'internal' || refusal.code === 'upstream_protocol_error') this.report(refusal);
    this.fail(refusal);
  }

  /** If not, the request is served later. */
  #letIn(authorizer: Authorizer): boolean {
    const identified = authorizer.identify(this.#arrived);
    if (!(identified instanceof Promise)) {
      this.#enter(identified);
      return true;
    }
    // An app whose request is whole is read on, so that its leaving is noticed.
    if (!this.stream.requestComplete) this.stream.pause();
    void this.#serveWhenIdentified(identified);
    return false;
  }

  async #serveWhenIdentified(identifying: Promise<IdentifiedCaller>): Promise<void> {
    try {
      const identified = await identifying;
      if (this.over) return;
      this.#enter(identified);
      this.#serve();
    } catch (error) {
      if (!this.over) this.#refuse(error);
    }
    if (this.over || this.#service?.sentBy === undefined) return;
    this.stream.resume();
    this.flushRequest();
  }

  #enter(identified: IdentifiedCaller): void {
    this.recorder?.identified(identified.name);
    this.#caller = identified.enter(this.#context.snapshot().callers);
  }

  #serviceFor(destination: Destination): RequestService {
    const context = this.#context;
    if (!destination.tunnel) return new Forwarding(this, context, destination);
    if (destination.listed === undefined) return new ConnectTunnel(this, destination);
    if (context.interceptConnect === undefined)
      throw new SidecarError('internal', 'there is nothing that intercepts');
    return context.interceptConnect(this, destination);
  }

  #admit(): Destination {
    const { request } = this;
    const context = this.#context;
    const snapshot = context.snapshot();
    const { destinations, admission } = snapshot;
    const { listed } = context;
    const destination =
      listed === undefined ? destinations.find(request) : destinations.findListed(listed, request);
    const { config, observer } = destination.route;
    this.#observer = observer;
    this.#route = config;
    this.recorder?.routed(config);
    this.#timeoutMs = config.timeouts.idleMs;
    this.#caller?.assertMayUse(config);
    for (const rule of admission.onDestination) rule(request, destination, context, snapshot);
    this.#counted = 'in-flight';
    context.load.inFlight += 1;
    snapshot.admitted();
    this.#snapshot = snapshot;
    observer.started();
    return destination;
  }

  #answerWith(own: LocalReply): void {
    this.#progress = 'answered';
    this.#service?.release();
    this.#status = own.status;
    if (this.isGrpc) this.#grpcStatus = grpcStatusOf(own.fields);
    const identified = { ...own, fields: [...own.fields, REQUEST_ID_FIELD, this.identify()] };
    if (this.recorder !== undefined && this.request.method !== 'HEAD') {
      this.recorder.bytes.toApp += own.body.length;
    }
    this.stream.sendLocalReply(identified, this.#timeoutMs);
  }

  #cut(why: SidecarError<ProxyErrorCode>): void {
    this.#breakOff();
    this.stream.cut(why);
  }

  #breakOff(): void {
    if (this.#progress !== 'answered') this.#progress = 'broken-off';
    this.#service?.release();
  }
}
