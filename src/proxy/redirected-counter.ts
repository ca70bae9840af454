import { Counter, type Registry } from '../platform/prometheus.ts';

/** Registers the counter of connections that the system redirected here; once per registry. */
export function redirectedCounter(registry: Registry): (result: string) => void {
  const counter = new Counter({
    name: 'token_sidecar_proxy_redirected_connections_total',
    help: 'Connections that were redirected here: listed get the token, passed go as they are to where they were going, refused found nobody there, left ended before any of these.',
    labelNames: ['result'] as const,
    registers: [registry],
  });
  return (result) => counter.labels({ result }).inc();
}
