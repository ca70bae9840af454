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
import { redactedPath } from '../http/syntax.ts';
import {
  CLIENT_CLOSED_REQUEST,
  type EndedRequest,
  type RecordRequest,
  type RequestRecorder,
  type UnreadRequest,
} from '../observer.ts';
import { shortMethod } from '../proxy-error.ts';
import type { IncomingRequest } from '../streams/contract.ts';

interface RecordingOptions {
  readonly clock: Clock;
  /** Gets lines about each request at level `trace`. */
  readonly log: Logger;
  readonly accessLog?: AccessLog | undefined;
  readonly tracer?: Tracer | undefined;
}

export function recordingOf(options: RecordingOptions): RecordRequest {
  const { accessLog, tracer, log } = options;
  if (accessLog === undefined && tracer === undefined) {
    return (request) => (log.isLevelEnabled('trace') ? new RecordedRequest(request, options) : undefined);
  }
  return (request) => new RecordedRequest(request, options);
}

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
    options.log.trace({ requestId: this.requestId, method: shortMethod(method), protocol }, 'request begun');
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
    // Level `trace` only observes.
    if (accessLog === undefined && tracer === undefined) return request;
    return this.#toSend(request);
  }

  onResponse(status: number): void {
    this.#upstreamMs = this.#nowMs() - this.#sentAtMs;
    this.#attempt?.answered(status);
  }

  onResponseEnd(): void {
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
    // Most requests get no line.
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
      // The body of a 205 goes no further (RFC 9110 §15.3.6).
      responseBytes: status === 205 ? 0 : this.bytes.toApp,
      durationMs: tenths(ended.durationMs),
      upstreamMs: this.#upstreamMs === undefined ? undefined : tenths(this.#upstreamMs),
    };
    if (isLogged) accessLog?.write({ ...record, path });
    // Without the app's paths.
    log.trace(record, 'request ended');
  }

  #endAttempt(failure?: ProxyErrorCode | 'abandoned'): void {
    this.#attempt?.end(failure);
    this.#attempt = undefined;
  }

  #toSend(request: IncomingRequest): IncomingRequest {
    const { fields, connectionOptions } = request;
    const trace = this.#attempt?.trace;
    // An id listed in Connection ends here (RFC 9110 §7.6.1), and is replaced.
    const keepsId = hasField(fields, REQUEST_ID_FIELD) && !connectionOptions.includes(REQUEST_ID_FIELD);
    const sent: string[] = [];
    for (let at = 0; at < fields.length; at += 2) {
      const name = fields[at] as string;
      if (!keepsId && isNamed(name, REQUEST_ID_FIELD)) continue;
      if (trace !== undefined && isNamed(name, TRACEPARENT_FIELD)) continue;
      // It belongs to the trace that it came with (§3.3).
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
    return { method: shortMethod(this.#request.method), path: redactedPath(this.#request) };
  }

  #destination(): { readonly route: string | undefined; readonly upstream: string | undefined } {
    return { route: this.#route?.name, upstream: this.#route?.upstream.authority };
  }

  #nowMs(): number {
    return this.#options.clock.monotonicMs();
  }
}

/** To one decimal. */
function tenths(ms: number): number {
  return Math.round(ms * 10) / 10;
}

/** Nothing in it is secret: no field, no query. */
interface AccessRecord {
  readonly requestId: string;
  readonly traceId: string | undefined;
  readonly spanId: string | undefined;
  /** Absent where callers are not told apart. */
  readonly caller: string | undefined;
  readonly method: string;
  readonly path: string;
  readonly protocol: string;
  readonly route: string | undefined;
  readonly upstream: string | undefined;
  readonly upstreamProtocol: string | undefined;
  readonly status: number;
  readonly grpcStatus: number | 'other' | undefined;
  /** The proxy's own. */
  readonly error: string | undefined;
  /** How often it was sent upstream. */
  readonly sent: number;
  /** Of the body, or of a tunnel, from the app. */
  readonly requestBytes: number;
  /** To the app. */
  readonly responseBytes: number;
  readonly durationMs: number;
  /** From the last sending to the answer's head. */
  readonly upstreamMs: number | undefined;
}

type UnreadRecord = UnreadRequest & Pick<AccessRecord, 'sent' | 'requestBytes'>;

type Outcome = Pick<AccessRecord, 'status' | 'error' | 'grpcStatus'>;

/** A sample always includes failed requests. */
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

  /** Ask once per request: sampling is random. */
  wants(outcome: Outcome): boolean {
    return hasFailed(outcome) || (this.#config.requests === 'all' && this.#random() < this.#config.sample);
  }

  write(record: AccessRecord | UnreadRecord): void {
    this.#log.info(record, 'request');
  }

  writeUnread(unread: UnreadRequest): void {
    this.write({ ...unread, sent: 0, requestBytes: 0 });
  }
}

function hasFailed({ status, error, grpcStatus }: Outcome): boolean {
  return error !== undefined || status >= 400 || (grpcStatus !== undefined && grpcStatus !== 0);
}

export interface Tracer {
  /** @param parent what the app sent, if anything. */
  begin(request: IncomingRequest, parent: TraceContext | undefined): RequestSpan;
}

export interface RequestSpan {
  readonly trace: TraceContext;
  routed(route: RouteConfig): void;
  awaits(grant: GrantTrace): void;
  /**
   * @param target as sent, without a token.
   * @param resendCount how often it was sent before.
   */
  send(target: string, route: RouteConfig, resendCount: number): AttemptSpan;
  failed(code: ProxyErrorCode): void;
  end(ended: EndedRequest): void;
}

export interface AttemptSpan {
  /** Sent to the upstream. */
  readonly trace: TraceContext;
  answered(status: number): void;
  /** @param failure why the answer is missing or incomplete. */
  end(failure?: ProxyErrorCode | 'abandoned'): void;
}
