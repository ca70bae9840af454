import { Counter, type Registry } from '../platform/prometheus.ts';
import type { Protocol } from './http/messages.ts';

const APP_PROTOCOLS: readonly Protocol[] = ['http1', 'h2'];
/** `none`: nothing was sent upstream, or bytes that the proxy does not read. */
const UPSTREAM_PROTOCOLS = ['none', 'http1', 'h2'] as const;

/** Ended requests of one route by the HTTP versions on both sides: one addition per request. */
class ProtocolTally {
  /** Per pair, the requests not yet added to the counter. */
  readonly #uncounted = new Float64Array(APP_PROTOCOLS.length * UPSTREAM_PROTOCOLS.length);

  count(app: Protocol, upstream: Protocol | undefined): void {
    const pair =
      (app === 'h2' ? UPSTREAM_PROTOCOLS.length : 0) +
      (upstream === undefined ? 0 : upstream === 'h2' ? 2 : 1);
    this.#uncounted[pair] = (this.#uncounted[pair] as number) + 1;
  }

  /** Hands over what has been counted since the last time. */
  take(add: (labels: { protocol: string; upstream_protocol: string }, count: number) => void): void {
    for (const [pair, count] of this.#uncounted.entries()) {
      if (count === 0) continue;
      const protocol = APP_PROTOCOLS[Math.floor(pair / UPSTREAM_PROTOCOLS.length)] as string;
      const upstream_protocol = UPSTREAM_PROTOCOLS[pair % UPSTREAM_PROTOCOLS.length] as string;
      this.#uncounted[pair] = 0;
      add({ protocol, upstream_protocol }, count);
    }
  }
}

/**
 * Registers `token_sidecar_proxy_requests_by_protocol_total`. It is separate from `token_sidecar_proxy_requests_total`,
 * because users rely on the labels of that as they are.
 */
export function createProtocolTallies(registry: Registry): {
  forRoute(route: string): ProtocolTally;
  forget(route: string): void;
} {
  const tallies = new Map<string, ProtocolTally>();
  new Counter({
    name: 'token_sidecar_proxy_requests_by_protocol_total',
    help: 'Requests that have ended, by the versions of HTTP that they came and left by; none where they did not leave.',
    labelNames: ['route', 'protocol', 'upstream_protocol'] as const,
    registers: [registry],
    collect() {
      for (const [route, tally] of tallies) {
        tally.take((labels, count) => this.inc({ route, ...labels }, count));
      }
    },
  });
  return {
    forRoute(route) {
      const tally = new ProtocolTally();
      tallies.set(route, tally);
      return tally;
    },
    forget: (route) => tallies.delete(route),
  };
}
