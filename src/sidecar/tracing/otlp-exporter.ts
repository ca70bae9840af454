/** Exports spans by OTLP over HTTP. */

import type { Agent } from 'node:http';
import type { LookupFunction } from 'node:net';
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import type { SpanExporter } from '@opentelemetry/sdk-trace';
import type { CollectorFiles, TracingConfig } from '../../config/resolve-tracing.ts';
import { MAX_PEM_BYTES, readBoundedFileSync } from '../../platform/files/bounded-file.ts';
import { byTheRules } from '../../platform/net/connect.ts';
import { http } from '../../platform/net/node-http.ts';
import { https } from '../../platform/net/node-https.ts';
import type { Clock } from '../../platform/time/clock.ts';

/** @param lookup for the collector's name; the system's unless given. */
export function openOtlpExporter(
  { protocol, files, timeoutMs }: Pick<TracingConfig, 'protocol' | 'files' | 'timeoutMs'>,
  lookup: LookupFunction | undefined,
): EndableExporter {
  // `proxyEnv` is set, so that NODE_USE_ENV_PROXY cannot lead spans into this sidecar.
  const options = { keepAlive: true, proxyEnv: {}, ...(lookup === undefined ? {} : { lookup }) };
  let agent: Agent | undefined;
  const settings = {
    timeoutMillis: timeoutMs,
    httpAgentOptions(scheme: string): Agent {
      // Set, so that NODE_TLS_REJECT_UNAUTHORIZED cannot turn verification off.
      agent = byTheRules(
        scheme === 'https:'
          ? new https.Agent({ ...options, rejectUnauthorized: true, ...read(files) })
          : new http.Agent(options),
      );
      return agent;
    },
  };
  return {
    exporter: protocol === 'http/json' ? new JsonExporter(settings) : new ProtobufExporter(settings),
    end() {
      if (agent === undefined) return;
      agent.createConnection = refuseConnection;
      agent.destroy();
    },
  };
}

/** @throws {Error} if a file cannot be read or is empty, which fails the export. */
function read(files: CollectorFiles): CollectorFiles {
  return Object.fromEntries(Object.entries(files).map(([name, path]) => [name, readPem(path)]));
}

/** TLS takes an empty text for none: it would trust the system's authorities, and show no certificate. */
function readPem(path: string): string {
  const text = readBoundedFileSync(path, MAX_PEM_BYTES);
  if (!text.includes('-----BEGIN ')) throw new Error(`${path} holds no PEM`);
  return text;
}

/** The exporter may try once more. */
function refuseConnection(): never {
  throw new Error('this exporter has ended');
}

/**
 * The exporter's own time-out is of silence only: a collector that sends an octet now and then would hold spans and
 * connections for good.
 */
interface EndableExporter {
  readonly exporter: SpanExporter;
  end(): void;
}

type Result = Parameters<Parameters<SpanExporter['export']>[1]>[0];

interface UnderWay {
  readonly ended: Promise<void>;
  giveUp(why: string): void;
}

/** Further ones are refused. Only at the program's end is there more than one. */
const MAX_CONCURRENT = 30;

/**
 * @param open makes an exporter for one export at a time. After a failure it is not used again, since its certificates
 * may be outdated.
 * @param timeoutMs for a whole export.
 */
export function exportsInTime(open: () => EndableExporter, timeoutMs: number, clock: Clock): EndableExporter {
  const idle = [open()];
  const underWay = new Set<UnderWay>();
  let isEnded = false;

  const exporter: Required<Pick<SpanExporter, 'export' | 'forceFlush' | 'shutdown'>> = {
    export(spans, done) {
      if (isEnded) return done(failed(ENDED));
      if (underWay.size >= MAX_CONCURRENT) return done(failed('too many exports are under way'));
      const endable = idle.pop() ?? open();
      const { promise, resolve } = Promise.withResolvers<void>();
      /** @returns false if it had ended before. */
      const conclude = (result: Result): boolean => {
        if (!underWay.delete(own)) return false;
        cancel();
        resolve();
        done(result);
        return true;
      };
      const own: UnderWay = {
        ended: promise,
        giveUp(why) {
          // First, since the exporter takes a cut answer for a success if its status was one.
          conclude(failed(why));
          endable.end();
        },
      };
      underWay.add(own);
      const cancel = clock.after(timeoutMs, () =>
        own.giveUp(`the collector has not answered in whole within ${timeoutMs} ms`),
      );
      endable.exporter.export(spans, (result) => {
        if (!conclude(result)) return;
        if (result.code === FAILED) endable.end();
        else idle.push(endable);
      });
    },

    async forceFlush() {
      await Promise.all([...underWay].map(({ ended }) => ended));
    },

    shutdown: () => exporter.forceFlush(),
  };

  return {
    exporter,
    end() {
      isEnded = true;
      for (const own of [...underWay]) own.giveUp(ENDED);
      for (const endable of idle) endable.end();
    },
  };
}

const ENDED = 'the program has ended';

function failed(why: string): Result {
  return { code: FAILED, error: new Error(why) };
}

/** `ExportResultCode` of OpenTelemetry's core, which is no dependency. */
const FAILED = 1;
