/** The exporter of spans by OTLP over HTTP, and the end of its connections. */

import type { Agent } from 'node:http';
import type { LookupFunction } from 'node:net';
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import type { CollectorFiles, TracingConfig } from '../../config/resolve-tracing.ts';
import { MAX_PEM_BYTES, readBoundedFileSync } from '../../platform/files/bounded-file.ts';
import { byTheRules } from '../../platform/net/connect.ts';
import { http } from '../../platform/net/node-http.ts';
import { https } from '../../platform/net/node-https.ts';
import type { EndableExporter } from './exports-in-time.ts';

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
    /** Takes the place of what the exporter would make by the environment, certificates included; asked for once, by the first export. */
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

/** What the files hold by now. @throws {Error} if one cannot be read or holds nothing of use, which fails the export. */
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
