/** One request from its head to its end, for the access log and for traces. */

import { randomUUID } from 'node:crypto';
import type { AccessLogConfig, RouteConfig } from '../../config/config.ts';
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
  type UnreadRequest,
} from '../observer.ts';
import { shownMethod } from '../proxy-error.ts';
import type { IncomingRequest } from '../streams/contract.ts';

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

/** The record of one request. */
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

/** What is logged of a request that has ended. Nothing in it is secret: no field, no query. */
interface AccessRecord {
  readonly requestId: string;
  readonly traceId: string | undefined;
  readonly spanId: string | undefined;
  /** By name; absent where callers are not told apart. */
  readonly caller: string | undefined;
  readonly method: string;
  readonly path: string;
  readonly protocol: string;
  readonly route: string | undefined;
  readonly upstream: string | undefined;
  readonly upstreamProtocol: string | undefined;
  readonly status: number;
  readonly grpcStatus: number | 'other' | undefined;
  /** The proxy's own error code. */
  readonly error: string | undefined;
  /** How often the request was sent upstream. */
  readonly sent: number;
  /** Bytes of bodies, or of a tunnel, from the app. */
  readonly requestBytes: number;
  /** The same, to the app. */
  readonly responseBytes: number;
  readonly durationMs: number;
  /** From the last sending to the head of its answer. */
  readonly upstreamMs: number | undefined;
}

/** Most is unknown about a request that could not be read. */
type UnreadRecord = UnreadRequest & Pick<AccessRecord, 'sent' | 'requestBytes'>;

type Outcome = Pick<AccessRecord, 'status' | 'error' | 'grpcStatus'>;

/** Logs a line for every request, for failed ones, or for a sample, which always includes failed ones. */
export class AccessLog {
  readonly #log: Logger;
  readonly #config: AccessLogConfig;
  readonly #random: () => number;

  /** @param random a number in [0, 1). */
  constructor(log: Logger, config: AccessLogConfig, random: () => number) {
    this.#log = log;
    this.#config = config;
    this.#random = random;
  }

  /** Whether a request with this outcome gets a line. Ask once per request: sampling is random. */
  wants(outcome: Outcome): boolean {
    return hasFailed(outcome) || (this.#config.requests === 'all' && this.#random() < this.#config.sample);
  }

  write(record: AccessRecord | UnreadRecord): void {
    this.#log.info(record, 'request');
  }

  /** Logs what could not be read as a request, which has failed. */
  writeUnread(unread: UnreadRequest): void {
    this.write({ ...unread, sent: 0, requestBytes: 0 });
  }
}

function hasFailed({ status, error, grpcStatus }: Outcome): boolean {
  return error !== undefined || status >= 400 || (grpcStatus !== undefined && grpcStatus !== 0);
}

/** Makes spans of requests. The implementation is loaded only when traces are asked for. */
export interface Tracer {
  /** @param parent the trace that the app says its request belongs to. */
  begin(request: IncomingRequest, parent: TraceContext | undefined): RequestSpan;
}

/** The span of an app's request. */
export interface RequestSpan {
  readonly trace: TraceContext;
  routed(route: RouteConfig): void;
  /** The request waits for this grant. */
  awaits(grant: GrantTrace): void;
  /**
   * The request is sent upstream.
   * @param target as sent there, without a token.
   * @param resendCount how often it was sent before.
   */
  send(target: string, route: RouteConfig, resendCount: number): AttemptSpan;
  failed(code: ProxyErrorCode): void;
  end(ended: EndedRequest): void;
}

/** The span of one attempt. */
export interface AttemptSpan {
  /** Sent to the upstream. */
  readonly trace: TraceContext;
  answered(status: number): void;
  /** @param failure why there was no answer, or not all of it. */
  end(failure?: ProxyErrorCode | 'abandoned'): void;
}
