/** The exporter of spans by OTLP over HTTP, and the end of its connections. */

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

/** @param lookup finds the collector's name; the system's unless given. */
export function openOtlpExporter(
  { protocol, files, timeoutMs }: Pick<TracingConfig, 'protocol' | 'files' | 'timeoutMs'>,
  lookup: LookupFunction | undefined,
): EndableExporter {
  // `proxyEnv` is said aloud, so that NODE_USE_ENV_PROXY cannot lead spans into this very sidecar.
  const options = { keepAlive: true, proxyEnv: {}, ...(lookup === undefined ? {} : { lookup }) };
  let agent: Agent | undefined;
  const settings = {
    timeoutMillis: timeoutMs,
    /**
     * Takes the place of what the exporter would make by the environment, certificates included; asked for once, by the
     * first export.
     */
    httpAgentOptions(scheme: string): Agent {
      // Verification is said aloud, too, so that NODE_TLS_REJECT_UNAUTHORIZED cannot turn it off.
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

/**
 * What the files hold by now.
 * @throws {Error} if one cannot be read or holds nothing of use, which fails the export.
 */
function read(files: CollectorFiles): CollectorFiles {
  return Object.fromEntries(Object.entries(files).map(([name, path]) => [name, readPem(path)]));
}

/** TLS takes an empty text for none: it would trust whomever the system trusts, and show no certificate. */
function readPem(path: string): string {
  const text = readBoundedFileSync(path, MAX_PEM_BYTES);
  if (!text.includes('-----BEGIN ')) throw new Error(`${path} holds no PEM`);
  return text;
}

/** The exporter may try once more by itself. */
function refuseConnection(): never {
  throw new Error('this exporter has ended');
}

/**
 * An export has an end, whatever the collector does. The exporter's own time-out is of silence alone: from a collector
 * that sends an octet now and then, each export would keep its spans and its connection for good.
 */
interface EndableExporter {
  readonly exporter: SpanExporter;
  /** Ends its connections, and all that it does; it is of no use afterwards. */
  end(): void;
}

type Result = Parameters<Parameters<SpanExporter['export']>[1]>[0];

interface UnderWay {
  readonly ended: Promise<void>;
  giveUp(why: string): void;
}

/** Further ones are refused. One is the rule: only at the end of the program do all that wait go out at once. */
const MAX_CONCURRENT = 30;

/**
 * @param open makes an exporter. Each runs one export at a time. One that has failed or run out of time is never used
 * again: nothing that it may still do counts, and its certificates may be outdated.
 * @param timeoutMs for one export, all of it.
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
      /** @returns whether it had not ended before. */
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
          // In this order: the exporter takes an answer that is cut for a success where its status was one.
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

/** `ExportResultCode` of OpenTelemetry's core, which is no dependency of ours. */
const FAILED = 1;
