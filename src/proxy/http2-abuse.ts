import { Counter, type Registry } from '../platform/prometheus.ts';
import { codeOf, ErrorCode, FAULTS, type FaultReason } from './http2/errors.ts';

/** Those that end only a stream, or come from upstreams. */
const OF_OTHERS: ReadonlySet<string> = new Set(['fields_too_large', 'interim_flood']);

/** Registers the counter; once per registry. */
export function http2AbuseCounter(registry: Registry): (kind: string) => void {
  const counter = new Counter({
    name: 'token_sidecar_proxy_http2_abuse_total',
    help: 'HTTP/2 connections of the app that were ended because they asked for more than they may.',
    labelNames: ['kind'] as const,
    registers: [registry],
  });
  // Starts at zero, so that `rate()` sees the first increase.
  for (const kind of Object.keys(FAULTS)) {
    const ends = codeOf(kind as FaultReason) === ErrorCode.ENHANCE_YOUR_CALM && !OF_OTHERS.has(kind);
    if (ends) counter.labels({ kind }).inc(0);
  }
  return (kind) => counter.labels({ kind }).inc();
}
