import { Counter, type Registry } from '../platform/prometheus.ts';
import type { CertificateMetrics } from '../platform/x509/certificate-metrics.ts';
import { DurationHistogram, type DurationTally } from './duration-histogram.ts';
import type { UpstreamObserver } from './observer.ts';

/** Registers the metrics of upstreams and of the connections to them. A series begins with its first event. */
export function createUpstreamMetrics(
  registry: Registry,
  certificates: CertificateMetrics,
): { forRoute(route: string): UpstreamObserver } {
  const registers = [registry];
  const durations = new DurationHistogram(registry, {
    name: 'token_sidecar_proxy_upstream_duration_seconds',
    help: 'Time from the sending of a request to the head of its answer, for each time it was sent.',
    labelNames: ['route'],
  });
  const connections = new Counter({
    name: 'token_sidecar_proxy_upstream_connections_total',
    help: 'Connections to upstreams that were opened.',
    labelNames: ['route'] as const,
    registers,
  });
  const handshakes = new Counter({
    name: 'token_sidecar_proxy_upstream_tls_handshakes_total',
    help: 'TLS handshakes with upstreams that succeeded, and whether they resumed a session.',
    labelNames: ['route', 'resumed'] as const,
    registers,
  });

  function build(route: string): UpstreamObserver {
    let duration: DurationTally | undefined;
    return {
      upstreamAnswered(durationMs) {
        duration ??= durations.series({ route });
        duration.observe(durationMs / 1000);
      },
      connectionOpened: () => connections.inc({ route }),
      connectionSecured: (resumed) => handshakes.inc({ route, resumed: String(resumed) }),
      certificatesInUse: (file, pem) =>
        certificates.inUse({ route }, file, file === 'caFile' ? 'trust' : 'identity', pem),
    };
  }

  return { forRoute: build };
}
