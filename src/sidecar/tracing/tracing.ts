/** Spans, and their way out by OTLP over HTTP. Loaded only where somebody asks for traces. */

import type { LookupFunction } from 'node:net';
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
import type { TracingConfig } from '../../config/resolve-tracing.ts';
import { messageOf } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log/logger.ts';
import { http } from '../../platform/net/node-http.ts';
import { type Clock, systemClock } from '../../platform/time/clock.ts';
import { VERSION } from '../../platform/version.ts';
import type { Tracer } from '../../proxy/recording/request-recorder.ts';
import type { GrantTracer } from '../../token/grant-report.ts';
import { exportsInTime, openOtlpExporter } from './otlp-exporter.ts';
import { grantSpans, requestSpans } from './spans.ts';

const NAME = 'token-sidecar';

/** Values are cut to this. Characters. */
const MAX_VALUE_LENGTH = 1024;

export interface Tracing {
  /** Of requests. */
  readonly tracer: Tracer;
  readonly grants: GrantTracer;
  /** Exports what is left, for as long as `boundMs` at the most. No connection is left. */
  close(boundMs: number): Promise<void>;
}

interface TracingOptions {
  /** Finds the collector: where its name is a captured one, the system's own leads back to this very sidecar. */
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
        // Why it could not be exported has been said. One batch that is refused holds up no other.
        .catch(() => exporter.forceFlush?.());
      await Promise.race([exported, bound.promise]);
      clearTimeout(timer);
      end();
    },
  };
}

/** Says in the log why spans were not taken. Lines of one kind are limited there. */
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

/** Nothing that the collector has written: its phrase, or the names in its certificate, may be anything. */
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
