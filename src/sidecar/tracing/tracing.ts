/** Loaded only if traces are on. */

import type { LookupFunction } from 'node:net';
import {
  type Attributes,
  type Tracer as OtelTracer,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api';
import {
  defaultResource,
  detectResources,
  envDetector,
  type Resource,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { RouteConfig } from '../../config/config.ts';
import type { TracingConfig } from '../../config/resolve-tracing.ts';
import { messageOf, type ProxyErrorCode } from '../../platform/errors.ts';
import { GRPC_STATUS, type GrpcStatus, type GrpcStatusName } from '../../platform/grpc-status.ts';
import type { Logger } from '../../platform/log/logger.ts';
import { redactedUrl } from '../../platform/log/redacted-text.ts';
import { http } from '../../platform/net/node-http.ts';
import { type Clock, systemClock } from '../../platform/time/clock.ts';
import { VERSION } from '../../platform/version.ts';
import { knownMethod, OTHER_METHOD, type TraceContext } from '../../proxy/http/messages.ts';
import { redactedPath } from '../../proxy/http/syntax.ts';
import type { EndedRequest } from '../../proxy/observer.ts';
import type { AttemptSpan, RequestSpan, Tracer } from '../../proxy/recording/request-recorder.ts';
import type { IncomingRequest } from '../../proxy/streams/contract.ts';
import type { GrantTrace } from '../../token/bearer-source.ts';
import type { GrantTracer } from '../../token/grant-report.ts';
import { exportsInTime, openOtlpExporter } from './otlp-exporter.ts';

const NAME = 'token-sidecar';

/** Characters. */
const MAX_VALUE_LENGTH = 1024;

export interface Tracing {
  readonly tracer: Tracer;
  readonly grants: GrantTracer;
  /** Closes all connections after at most `boundMs`. */
  close(boundMs: number): Promise<void>;
}

interface TracingOptions {
  /** If the collector's name is captured, the system's lookup leads back to this sidecar. */
  readonly lookup?: LookupFunction | undefined;
  /** By the standard variables unless given. */
  readonly exporter?: SpanExporter;
  readonly clock?: Clock;
}

export function openTracing(
  config: TracingConfig,
  log: Logger,
  { lookup, clock = systemClock, exporter: given }: TracingOptions = {},
): Tracing {
  const { exporter, end } =
    given === undefined
      ? exportsInTime(() => openOtlpExporter(config, lookup), config.timeoutMs, clock)
      : { exporter: given, end: () => undefined };
  const provider = new TracerProvider({
    resource: describeProgram(),
    sampler: samplerOf(config),
    spanLimits: { attributeValueLengthLimit: MAX_VALUE_LENGTH },
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: reporting(exporter, log),
        scheduledDelayMillis: config.delayMs,
        exportTimeoutMillis: config.timeoutMs,
        maxQueueSize: config.mostWaiting,
        maxExportBatchSize: config.mostAtOnce,
      }),
    ],
  });
  const tracer = provider.getTracer(NAME, VERSION);
  return {
    tracer: requestSpans(tracer),
    grants: grantSpans(tracer),
    async close(boundMs) {
      const bound = Promise.withResolvers<void>();
      const timer = setTimeout(bound.resolve, boundMs);
      const exported = provider
        .shutdown()
        // Logged already. A refused batch holds up no other.
        .catch(() => exporter.forceFlush?.());
      await Promise.race([exported, bound.promise]);
      clearTimeout(timer);
      end();
    },
  };
}

/** The logger limits repeats. */
function reporting(exporter: SpanExporter, log: Logger): SpanExporter {
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        if (result.error !== undefined) {
          log.warn({ spans: spans.length, reason: reasonOf(result.error) }, 'spans were not exported');
        }
        done(result);
      });
    },
    shutdown: () => exporter.shutdown(),
    ...(exporter.forceFlush === undefined ? {} : { forceFlush: () => exporter.forceFlush?.() }),
  } as SpanExporter;
}

/** Quotes nothing that the collector has written. */
function reasonOf(error: Error): string {
  const { code } = error as { code?: unknown };
  if (typeof code === 'number')
    return `the collector answered ${code} ${http.STATUS_CODES[code] ?? ''}`.trim();
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return "the collector's certificate is for other names";
  return messageOf(error);
}

/** `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` win. */
function describeProgram(): Resource {
  const own = resourceFromAttributes({ 'service.name': NAME, 'service.version': VERSION });
  return defaultResource()
    .merge(own)
    .merge(detectResources({ detectors: [envDetector] }));
}

function samplerOf({ sampler, ratio }: TracingConfig): Sampler {
  const [, parentBased, root] = /^(parentbased_)?(.*)$/.exec(sampler) ?? [];
  const decides =
    root === 'always_off'
      ? new AlwaysOffSampler()
      : root === 'traceidratio'
        ? new TraceIdRatioBasedSampler(ratio)
        : new AlwaysOnSampler();
  return parentBased === undefined ? decides : new ParentBasedSampler({ root: decides });
}

/** By OpenTelemetry's stable semantic conventions for HTTP spans. */
function requestSpans(tracer: OtelTracer): Tracer {
  return { begin: (request, parent) => new ServerSpan(tracer, request, parent) };
}

class ServerSpan implements RequestSpan {
  readonly trace: TraceContext;
  readonly #tracer: OtelTracer;
  readonly #span: Span;
  readonly #method: string;
  #failure: ProxyErrorCode | undefined;

  constructor(tracer: OtelTracer, request: IncomingRequest, parent: TraceContext | undefined) {
    const method = knownMethod(request.method);
    this.#tracer = tracer;
    this.#method = method;
    this.#span = tracer.startSpan(
      nameOf(method),
      {
        kind: SpanKind.SERVER,
        attributes: {
          'http.request.method': method,
          'url.path': redactedPath(request),
          // Apps send it to loopback.
          'url.scheme': 'http',
          'network.protocol.name': 'http',
          'network.protocol.version': versionOf(request.protocol),
          ...hostAddress(request.host),
        },
      },
      parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, remote(parent)),
    );
    this.trace = contextOf(this.#span);
  }

  routed({ name, match }: RouteConfig): void {
    this.#span.updateName(`${nameOf(this.#method)} ${match.pathPrefix}`);
    this.#span.setAttributes({ 'http.route': match.pathPrefix, 'token_sidecar.route': name });
  }

  awaits({ traceId, spanId, sampled }: GrantTrace): void {
    const traceFlags = sampled ? TraceFlags.SAMPLED : TraceFlags.NONE;
    this.#span.addLink({ context: { traceId, spanId, traceFlags } });
  }

  send(target: string, route: RouteConfig, resendCount: number): AttemptSpan {
    return new ClientSpan(this.#tracer, this.#span, { method: this.#method, target, route, resendCount });
  }

  failed(code: ProxyErrorCode): void {
    this.#failure = code;
  }

  end({ status, grpcStatus }: EndedRequest): void {
    const span = this.#span;
    if (status !== undefined) span.setAttribute('http.response.status_code', status);
    if (grpcStatus !== undefined) {
      span.setAttributes({ 'rpc.system': 'grpc', 'rpc.grpc.status_code': String(grpcStatus) });
    }
    const failure = this.#failure ?? failureOf(status) ?? grpcFailureOf(grpcStatus);
    if (failure !== undefined) fail(span, failure);
    span.end();
  }
}

function failureOf(status: number | undefined): string | undefined {
  if (status === undefined) return 'client_closed_request';
  return status >= 500 ? String(status) : undefined;
}

/** The conventions' faults of a gRPC server. */
const SERVER_FAULTS: readonly GrpcStatusName[] = [
  'UNKNOWN',
  'DEADLINE_EXCEEDED',
  'UNIMPLEMENTED',
  'INTERNAL',
  'UNAVAILABLE',
  'DATA_LOSS',
];

function grpcFailureOf(status: GrpcStatus | undefined): GrpcStatusName | undefined {
  return SERVER_FAULTS.find((name) => GRPC_STATUS[name] === status);
}

interface Attempt {
  readonly method: string;
  /** As sent, without a token. */
  readonly target: string;
  readonly route: RouteConfig;
  readonly resendCount: number;
}

/** A request as sent upstream. */
class ClientSpan implements AttemptSpan {
  readonly trace: TraceContext;
  readonly #span: Span;
  #answered = false;

  constructor(tracer: OtelTracer, parent: Span, { method, target, route, resendCount }: Attempt) {
    const { protocol, host, port, authority } = route.upstream;
    const path = redactedPath({ target, targetForm: 'origin' });
    const attributes: Attributes = {
      'http.request.method': method,
      'server.address': host,
      'server.port': port,
      'url.full': `${protocol}://${authority}${path}`,
      'url.scheme': protocol,
    };
    if (resendCount > 0) attributes['http.request.resend_count'] = resendCount;
    const options = { kind: SpanKind.CLIENT, attributes };
    this.#span = tracer.startSpan(nameOf(method), options, trace.setSpan(ROOT_CONTEXT, parent));
    this.trace = contextOf(this.#span);
  }

  answered(status: number): void {
    this.#answered = true;
    this.#span.setAttribute('http.response.status_code', status);
    if (status >= 400) fail(this.#span, String(status));
  }

  end(failure?: ProxyErrorCode | 'abandoned'): void {
    // Giving up an answer that has come, as for a tunnel, is no failure.
    if (failure !== undefined && !(failure === 'abandoned' && this.#answered)) fail(this.#span, failure);
    this.#span.end();
  }
}

/** @param type of few values: a status or a code. */
function fail(span: Span, type: string): void {
  span.setAttribute('error.type', type);
  span.setStatus({ code: SpanStatusCode.ERROR });
}

/** The conventions' name for unknown methods. */
function nameOf(method: string): string {
  return method === OTHER_METHOD ? 'HTTP' : method;
}

function versionOf(protocol: IncomingRequest['protocol']): string {
  return protocol === 'h2' ? '2' : '1.1';
}

function hostAddress(host: string | undefined): Attributes {
  const url = host === undefined ? null : URL.parse(`http://${host}`);
  if (url === null) return {};
  return { 'server.address': url.hostname, 'server.port': url.port === '' ? 80 : Number(url.port) };
}

function remote({ traceId, spanId, sampled }: TraceContext) {
  return { traceId, spanId, traceFlags: sampled ? TraceFlags.SAMPLED : TraceFlags.NONE, isRemote: true };
}

function contextOf(span: Span): TraceContext {
  const { traceId, spanId, traceFlags } = span.spanContext();
  return { traceId, spanId, sampled: (traceFlags & TraceFlags.SAMPLED) !== 0 };
}

/** Without tokens or proofs of the client. Each grant has its own trace, since many requests may wait for it. */
function grantSpans(tracer: OtelTracer): GrantTracer {
  return {
    begin(credential, reason) {
      const attributes = { 'token_sidecar.credential': credential, 'token_sidecar.grant.reason': reason };
      const span = tracer.startSpan('grant', { kind: SpanKind.CLIENT, attributes }, ROOT_CONTEXT);
      const { traceId, spanId, traceFlags } = span.spanContext();
      return {
        trace: { traceId, spanId, sampled: (traceFlags & TraceFlags.SAMPLED) !== 0 },
        end({ result, where, status }) {
          span.setAttribute('token_sidecar.grant.result', result);
          span.setAttributes(providerAddress(where));
          if (status !== undefined) {
            span.setAttributes({ 'http.request.method': 'POST', 'http.response.status_code': status });
          }
          if (result !== 'success' && result !== 'given_up') {
            span.setAttribute('error.type', result);
            span.setStatus({ code: SpanStatusCode.ERROR });
          }
          span.end();
        },
      };
    },
  };
}

function providerAddress(where: string | undefined): Attributes {
  const url = where === undefined ? null : URL.parse(where);
  if (url === null) return {};
  const { protocol, hostname, port } = url;
  return {
    'server.address': hostname,
    'server.port': port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port),
    'url.full': redactedUrl(url.href),
    'url.scheme': protocol.slice(0, -1),
  };
}
