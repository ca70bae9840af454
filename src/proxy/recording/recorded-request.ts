import { randomUUID } from 'node:crypto';
import type { RouteConfig } from '../../config/config.ts';
import type { ProxyErrorCode } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log/logger.ts';
import type { Clock } from '../../platform/time/clock.ts';
import type { GrantTrace } from '../../token/bearer-source.ts';
import { hasField, isNamed } from '../http/fields.ts';
import {
  givenRequestId,
  REQUEST_ID_FIELD,
  TRACEPARENT_FIELD,
  TRACESTATE_FIELD,
  type TraceContext,
  traceContextOf,
  traceparentOf,
} from '../http/messages.ts';
import { shownPath } from '../http/syntax.ts';
import {
  CLIENT_CLOSED_REQUEST,
  type EndedRequest,
  type RecordRequest,
  type RequestRecorder,
} from '../observer.ts';
import { shownMethod } from '../proxy-error.ts';
import type { IncomingRequest } from '../streams/contract.ts';
import type { AccessLog } from './access-log.ts';
import type { AttemptSpan, RequestSpan, Tracer } from './tracer.ts';

interface RecordingOptions {
  readonly clock: Clock;
  /** Gets lines about each request at level `trace`. */
  readonly log: Logger;
  readonly accessLog?: AccessLog | undefined;
  readonly tracer?: Tracer | undefined;
}

/** Follows all requests, or those that arrive while the log is at level `trace`, which can change at any time. */
export function recordingOf(options: RecordingOptions): RecordRequest {
  const { accessLog, tracer, log } = options;
  if (accessLog === undefined && tracer === undefined) {
    return (request) => (log.isLevelEnabled('trace') ? new RecordedRequest(request, options) : undefined);
  }
  return (request) => new RecordedRequest(request, options);
}

/** One request, followed from its head to its end: for the access log, for a trace, or for both. */
class RecordedRequest implements RequestRecorder {
  readonly requestId: string;
  readonly trace: TraceContext | undefined;
  readonly sampled: string | undefined;
  readonly bytes: RequestRecorder['bytes'] = { fromApp: 0, toApp: 0 };
  readonly #request: IncomingRequest;
  readonly #options: RecordingOptions;
  readonly #span: RequestSpan | undefined;
  readonly #hasTrace: boolean;
  #caller: string | undefined;
  #route: RouteConfig | undefined;
  #attempt: AttemptSpan | undefined;
  #sent = 0;
  #sentAtMs = 0;
  #upstreamMs: number | undefined;
  #error: ProxyErrorCode | undefined;

  constructor(request: IncomingRequest, options: RecordingOptions) {
    const parent = traceContextOf(request.fields);
    this.#request = request;
    this.#options = options;
    this.requestId = givenRequestId(request.fields) ?? randomUUID();
    this.#span = options.tracer?.begin(request, parent);
    this.#hasTrace = parent !== undefined;
    this.trace = this.#span?.trace ?? parent;
    this.sampled = this.#span?.trace.sampled === true ? this.#span.trace.traceId : undefined;
    const { method, protocol } = request;
    options.log.trace({ requestId: this.requestId, method: shownMethod(method), protocol }, 'request begun');
  }

  identified(caller: string): void {
    this.#caller = caller;
  }

  routed(route: RouteConfig): void {
    this.#route = route;
    this.#span?.routed(route);
  }

  awaits(grant: GrantTrace): void {
    this.#span?.awaits(grant);
  }

  sending(request: IncomingRequest, target: string): IncomingRequest {
    this.#endAttempt('abandoned');
    if (this.#route !== undefined) this.#attempt = this.#span?.send(target, this.#route, this.#sent);
    this.#sent += 1;
    this.#sentAtMs = this.#nowMs();
    this.#upstreamMs = undefined;
    const { accessLog, tracer } = this.#options;
    // Level `trace` only observes and changes nothing.
    if (accessLog === undefined && tracer === undefined) return request;
    return this.#toSend(request);
  }

  answered(status: number): void {
    this.#upstreamMs = this.#nowMs() - this.#sentAtMs;
    this.#attempt?.answered(status);
  }

  answerEnded(): void {
    this.#endAttempt();
  }

  attemptFailed(code: ProxyErrorCode): void {
    this.#endAttempt(code);
  }

  failed(code: ProxyErrorCode): void {
    this.#error = code;
    this.#span?.failed(code);
  }

  ended(ended: EndedRequest): void {
    this.#endAttempt('abandoned');
    this.#span?.end(ended);
    const { accessLog, log } = this.#options;
    const { status = CLIENT_CLOSED_REQUEST, grpcStatus } = ended;
    const isLogged = accessLog?.wants({ status, grpcStatus, error: this.#error }) === true;
    // Most requests end here: no record is built for one that gets no line.
    if (!isLogged && !log.isLevelEnabled('trace')) return;
    const { route, upstream } = this.#destination();
    const { path, ...record } = {
      requestId: this.requestId,
      traceId: this.trace?.traceId,
      spanId: this.trace?.spanId,
      caller: this.#caller,
      ...this.#shown(),
      protocol: this.#request.protocol,
      route,
      upstream,
      upstreamProtocol: ended.upstreamProtocol,
      status,
      grpcStatus,
      error: this.#error,
      sent: this.#sent,
      requestBytes: this.bytes.fromApp,
      // A body that an upstream sends with a 205 goes no further (RFC 9110 §15.3.6).
      responseBytes: status === 205 ? 0 : this.bytes.toApp,
      durationMs: tenths(ended.durationMs),
      upstreamMs: this.#upstreamMs === undefined ? undefined : tenths(this.#upstreamMs),
    };
    if (isLogged) accessLog?.write({ ...record, path });
    // Debugging the sidecar does not need the app's paths.
    log.trace(record, 'request ended');
  }

  #endAttempt(failure?: ProxyErrorCode | 'abandoned'): void {
    this.#attempt?.end(failure);
    this.#attempt = undefined;
  }

  /** The app's fields, with what identifies the request upstream: its id and, in a trace of ours, the span that sends it. */
  #toSend(request: IncomingRequest): IncomingRequest {
    const { fields, connectionOptions } = request;
    const trace = this.#attempt?.trace;
    // An id meant for this hop alone ends here (RFC 9110 §7.6.1): ours replaces it.
    const keepsId = hasField(fields, REQUEST_ID_FIELD) && !connectionOptions.includes(REQUEST_ID_FIELD);
    const sent: string[] = [];
    for (let at = 0; at < fields.length; at += 2) {
      const name = fields[at] as string;
      if (!keepsId && isNamed(name, REQUEST_ID_FIELD)) continue;
      if (trace !== undefined && isNamed(name, TRACEPARENT_FIELD)) continue;
      // State belongs to the trace that it came with (§3.3), not to ours.
      if (trace !== undefined && !this.#hasTrace && isNamed(name, TRACESTATE_FIELD)) continue;
      sent.push(name, fields[at + 1] as string);
    }
    if (trace !== undefined) sent.push(TRACEPARENT_FIELD, traceparentOf(trace));
    if (!keepsId) sent.push(REQUEST_ID_FIELD, this.requestId);
    const isOurs = (option: string) =>
      option === REQUEST_ID_FIELD || (trace !== undefined && option === TRACEPARENT_FIELD);
    return {
      ...request,
      fields: sent,
      connectionOptions: connectionOptions.filter((option) => !isOurs(option)),
    };
  }

  #shown(): { readonly method: string; readonly path: string } {
    return { method: shownMethod(this.#request.method), path: shownPath(this.#request) };
  }

  #destination(): { readonly route: string | undefined; readonly upstream: string | undefined } {
    return { route: this.#route?.name, upstream: this.#route?.upstream.authority };
  }

  #nowMs(): number {
    return this.#options.clock.monotonicMs();
  }
}

/** Milliseconds, to one decimal: nobody reads more. */
function tenths(ms: number): number {
  return Math.round(ms * 10) / 10;
}
