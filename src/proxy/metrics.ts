import { ERRORS, type ProxyErrorCode } from '../errors.ts';
import { Counter, Gauge, Histogram, type Registry } from '../prometheus.ts';

/** What the data path counts. Label children are looked up once per route, so that a request costs additions only. */
export interface ProxyMetrics {
  /** The series of one route; `none` for requests that no route matched. */
  forRoute(route: string): RouteMetrics;
  /** Totals by route since the start, for the status page. */
  traffic(): ReadonlyMap<string, RouteTraffic>;
}

export interface RouteTraffic {
  readonly total: number;
  readonly inFlight: number;
  /** Requests that the proxy refused or could not complete. */
  readonly errors: number;
}

export interface RouteMetrics {
  started(): void;
  /** The end of a request that has `started`. */
  ended(method: string, status: number, durationMs: number): void;
  /** A request that was refused before it counted as in flight. */
  refused(method: string, status: number, durationMs: number): void;
  error(code: ProxyErrorCode): void;
  upstreamUnauthorized(): void;
  replayed(result: ReplayResult): void;
}

type Tally = { -readonly [Key in keyof RouteTraffic]: RouteTraffic[Key] };

export type ReplayResult = 'success' | 'failure';

/** Methods are the client's choice of words; only these become label values (RFC 9110 §9.3, RFC 5789). */
const KNOWN_METHODS: ReadonlySet<string> = new Set([
  'CONNECT',
  'DELETE',
  'GET',
  'HEAD',
  'OPTIONS',
  'PATCH',
  'POST',
  'PUT',
  'TRACE',
]);

const DURATION_BUCKETS_SECONDS = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
];

/** Registers the proxy's metrics in `registry`; once per registry. */
export function createProxyMetrics(registry: Registry): ProxyMetrics {
  const registers = [registry];
  const requests = new Counter({
    name: 'token_sidecar_proxy_requests_total',
    help: 'Requests that have ended, by the status the app got; 499 where it left before an answer.',
    labelNames: ['route', 'method', 'code'] as const,
    registers,
  });
  const durations = new Histogram({
    name: 'token_sidecar_proxy_request_duration_seconds',
    help: 'Time from a request head to the end of its answer.',
    labelNames: ['route'] as const,
    buckets: DURATION_BUCKETS_SECONDS,
    registers,
  });
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
    help: 'Answers 401 of the upstream to an injected token.',
    labelNames: ['route'] as const,
    registers,
  });
  const replays = new Counter({
    name: 'token_sidecar_proxy_replays_total',
    help: 'Requests sent again with another token after a 401; a failure is a replay without a better answer.',
    labelNames: ['route', 'result'] as const,
    registers,
  });

  const known = new Map<string, RouteMetrics>();

  function build(route: string): RouteMetrics {
    const duration = durations.labels({ route });
    const tally: Tally = { total: 0, inFlight: 0, errors: 0 };
    tallies.set(route, tally);
    const refusedTokens = unauthorized.labels({ route });
    const replayed = {
      success: replays.labels({ route, result: 'success' }),
      failure: replays.labels({ route, result: 'failure' }),
    };
    // At zero from the start, so that the first increase is one that `rate()` sees.
    refusedTokens.inc(0);
    replayed.success.inc(0);
    replayed.failure.inc(0);
    for (const [error, row] of Object.entries(ERRORS)) {
      if ('status' in row) errors.labels({ route, error }).inc(0);
    }

    const requestChildren = new Map<string, { inc(): void }>();
    function count(method: string, status: number, durationMs: number): void {
      const label = KNOWN_METHODS.has(method) ? method : '_OTHER';
      const key = `${label} ${status}`;
      let child = requestChildren.get(key);
      if (child === undefined) {
        child = requests.labels({ route, method: label, code: String(status) });
        requestChildren.set(key, child);
      }
      child.inc();
      tally.total += 1;
      duration.observe(durationMs / 1000);
    }

    return {
      started() {
        tally.inFlight += 1;
      },
      ended(method, status, durationMs) {
        tally.inFlight -= 1;
        count(method, status, durationMs);
      },
      refused: count,
      error(error) {
        tally.errors += 1;
        errors.labels({ route, error }).inc();
      },
      upstreamUnauthorized: () => refusedTokens.inc(),
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
    traffic: () => tallies,
  };
}
