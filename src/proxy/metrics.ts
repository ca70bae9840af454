import type { CountedErrorCode } from '../platform/errors.ts';
import { Counter, Gauge, type Registry } from '../platform/prometheus.ts';
import type { CertificateMetrics } from '../platform/x509/certificate-metrics.ts';
import { createGrpcTallies, type GrpcTally } from './grpc-tallies.ts';
import { KNOWN_METHODS, methodIndexOf, type Protocol } from './http/messages.ts';
import { http2AbuseCounter } from './http2-abuse.ts';
import { CLIENT_CLOSED_REQUEST, type CountedRequest, type RouteObserver } from './observer.ts';
import { createProtocolTallies } from './protocol-tallies.ts';
import { redirectedCounter } from './redirected-counter.ts';
import { createRequestDurations, type RouteDurations } from './request-durations.ts';
import type { RouteFigures } from './route-figures.ts';
import { createUpstreamMetrics } from './upstream-metrics.ts';

/** The `route` label of requests that no route matched. */
export const NO_ROUTE = 'none';

/** What the data path counts: per request only additions to plain numbers, which become series when read. */
export interface ProxyMetrics {
  /** Counts for one route; {@link NO_ROUTE} for requests that no route matched. */
  forRoute(route: string): RouteObserver;
  /** Counts a connection of the app that was ended because it asked for more than it may. */
  http2Abuse(kind: string): void;
  /** Counts a connection that the system redirected here. */
  redirected(result: string): void;
  /** The exemplars that OpenMetrics puts after samples, by their names and labels: the traces of requests. */
  exemplars(): ReadonlyMap<string, string>;
  /**
   * Stops counting for a removed route; does nothing and returns false while its requests are in flight. Its series are
   * still to be removed.
   */
  forget(route: string): boolean;
  /** By route, since the start: for the status page. */
  figures(): ReadonlyMap<string, RouteFigures>;
}

/** Of a route, since the start. */
interface Tally {
  total: number;
  inFlight: number;
  errors: number;
  readonly errorsByCode: Map<string, number>;
  readonly durations: RouteDurations;
  refusedTokens: number;
  readonly grpc: GrpcTally;
  /** Ended requests by method and status. */
  readonly requests: Map<number, RequestTally>;
}

/** Statuses have three digits. */
const STATUSES = 1000;

/** Ended requests of a route with one method and one status. */
interface RequestTally {
  readonly labels: { readonly route: string; readonly method: string; readonly code: string };
  /** Requests not yet added to the counter. */
  uncounted: number;
}

/**
 * Registers the proxy's metrics in `registry`; once per registry.
 * @param certificates of the same registry; others may report files in use there, too.
 */
export function createProxyMetrics(registry: Registry, certificates: CertificateMetrics): ProxyMetrics {
  const registers = [registry];
  new Counter({
    name: 'token_sidecar_proxy_requests_total',
    help: `Requests that have ended, by the status the app got; ${CLIENT_CLOSED_REQUEST} where it left before an answer.`,
    labelNames: ['route', 'method', 'code'] as const,
    registers,
    collect() {
      for (const { requests } of tallies.values()) {
        for (const tally of requests.values()) {
          this.inc(tally.labels, tally.uncounted);
          tally.uncounted = 0;
        }
      }
    },
  });
  const durations = createRequestDurations(registry);
  const upstreams = createUpstreamMetrics(registry, certificates);
  const protocols = createProtocolTallies(registry);
  const grpcTallies = createGrpcTallies(registry);
  const tallies = new Map<string, Tally>();
  new Gauge({
    name: 'token_sidecar_proxy_requests_in_flight',
    help: 'Requests whose answer has not ended.',
    labelNames: ['route'] as const,
    registers,
    collect() {
      for (const [route, { inFlight }] of tallies) this.set({ route }, inFlight);
    },
  });
  const errors = new Counter({
    name: 'token_sidecar_proxy_errors_total',
    help: 'Requests that the proxy refused or could not complete, by error code.',
    labelNames: ['route', 'error'] as const,
    registers,
  });
  const unauthorized = new Counter({
    name: 'token_sidecar_proxy_upstream_unauthorized_total',
    help: 'Answers 401 of the upstream to an injected token, and gRPC calls that it ended as UNAUTHENTICATED (16).',
    labelNames: ['route'] as const,
    registers,
  });
  const replays = new Counter({
    name: 'token_sidecar_proxy_replays_total',
    help: 'Requests sent again with another token after such an answer; a failure is a replay without a better one.',
    labelNames: ['route', 'result'] as const,
    registers,
  });

  const known = new Map<string, RouteObserver>();

  function build(route: string): RouteObserver {
    const duration = durations.forRoute(route);
    const protocol = protocols.forRoute(route);
    const grpc = grpcTallies.forRoute(route);
    const tally: Tally = {
      total: 0,
      inFlight: 0,
      errors: 0,
      errorsByCode: new Map(),
      durations: duration,
      refusedTokens: 0,
      grpc,
      requests: new Map(),
    };
    tallies.set(route, tally);
    const refusedTokens = unauthorized.labels({ route });
    const replayed = {
      success: replays.labels({ route, result: 'success' }),
      failure: replays.labels({ route, result: 'failure' }),
    };
    // Starts at zero, so that `rate()` sees the first increase: a single 401 matters. Without a route no upstream is asked.
    if (route !== NO_ROUTE) {
      refusedTokens.inc(0);
      replayed.success.inc(0);
      replayed.failure.inc(0);
    }

    function count(
      request: CountedRequest,
      status: number,
      durationMs: number,
      upstream: Protocol | undefined,
      sampled?: string,
    ): void {
      const methodIndex = methodIndexOf(request.method);
      const key = methodIndex * STATUSES + status;
      let requests = tally.requests.get(key);
      if (requests === undefined) {
        const label = KNOWN_METHODS[methodIndex] as string;
        requests = { labels: { route, method: label, code: String(status) }, uncounted: 0 };
        tally.requests.set(key, requests);
      }
      requests.uncounted += 1;
      tally.total += 1;
      protocol.count(request.protocol, upstream);
      duration.observe(status, durationMs / 1000, sampled);
    }

    function countError(error: CountedErrorCode): void {
      tally.errors += 1;
      tally.errorsByCode.set(error, (tally.errorsByCode.get(error) ?? 0) + 1);
      errors.labels({ route, error }).inc();
    }

    return {
      ...upstreams.forRoute(route),
      started() {
        tally.inFlight += 1;
      },
      ended(request, status, durationMs, upstream, sampled) {
        tally.inFlight -= 1;
        count(request, status, durationMs, upstream, sampled);
      },
      refused(request, status, durationMs) {
        count(request, status, durationMs, undefined);
      },
      turnedAway(code, status, protocol) {
        countError(code);
        count({ method: '', protocol }, status, 0, undefined);
      },
      grpcEnded: (status) => grpc.count(status),
      error: countError,
      upstreamUnauthorized() {
        tally.refusedTokens += 1;
        refusedTokens.inc();
      },
      replayed: (result) => replayed[result].inc(),
    };
  }

  return {
    forRoute(route) {
      let metrics = known.get(route);
      if (metrics === undefined) {
        metrics = build(route);
        known.set(route, metrics);
      }
      return metrics;
    },
    http2Abuse: http2AbuseCounter(registry),
    redirected: redirectedCounter(registry),
    exemplars: () => durations.exemplars(),
    forget(route) {
      if ((tallies.get(route)?.inFlight ?? 0) > 0) return false;
      known.delete(route);
      tallies.delete(route);
      protocols.forget(route);
      grpcTallies.forget(route);
      return true;
    },
    figures: () => new Map([...tallies].map(([route, tally]) => [route, figuresOf(tally)])),
  };
}

function figuresOf({ durations, errorsByCode, grpc, requests: _, ...totals }: Tally): RouteFigures {
  return {
    ...totals,
    classes: durations.classes(),
    durations: durations.buckets(),
    errorsByCode: new Map(errorsByCode),
    grpc: { calls: grpc.calls, failures: grpc.failures },
  };
}
