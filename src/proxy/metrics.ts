import type { CountedErrorCode } from '../platform/errors.ts';
import { GRPC_STATUS, type GrpcStatus } from '../platform/grpc-status.ts';
import { Counter, Gauge, type Registry } from '../platform/prometheus.ts';
import type { CertificateMetrics } from '../platform/x509/certificate-metrics.ts';
import {
  createRequestDurations,
  DurationHistogram,
  type DurationTally,
  type RouteDurations,
} from './duration-histogram.ts';
import { KNOWN_METHODS, methodIndexOf, type Protocol } from './http/messages.ts';
import { codeOf, ErrorCode, FAULTS, type FaultReason } from './http2/errors.ts';
import {
  CLIENT_CLOSED_REQUEST,
  type CountedRequest,
  type RouteObserver,
  type UpstreamObserver,
} from './observer.ts';

export const NO_ROUTE = 'none';

/** A request costs only additions to plain numbers. */
export interface ProxyMetrics {
  forRoute(route: string): RouteObserver;
  http2Abuse(kind: string): void;
  redirected(result: string): void;
  exemplars(): ReadonlyMap<string, string>;
  /** Stops counting for a removed route; false while its requests are in flight. The caller then removes its series. */
  forget(route: string): boolean;
  /** By route, since the start. */
  stats(): ReadonlyMap<string, RouteStats>;
}

export interface RouteStats {
  readonly total: number;
  readonly inFlight: number;
  /** Requests that the proxy refused or could not complete. */
  readonly errors: number;
  /** Only codes that have occurred. */
  readonly errorsByCode: ReadonlyMap<string, number>;
  /** By the status's first digit: `classes[2]` counts 200 to 299. */
  readonly classes: readonly number[];
  /** One bucket for each of `BUCKETS_SECONDS`, and one for longer ones. */
  readonly durations: readonly number[];
  /** 401 or UNAUTHENTICATED to an injected token. */
  readonly refusedTokens: number;
  readonly grpc: {
    /** Of gRPC. */
    readonly calls: number;
    /** With a status other than OK. */
    readonly failures: number;
  };
}

interface Tally {
  total: number;
  inFlight: number;
  errors: number;
  readonly errorsByCode: Map<string, number>;
  readonly durations: RouteDurations;
  refusedTokens: number;
  grpcCalls: number;
  /** With a status other than OK. */
  grpcFailures: number;
  /** By method and status. */
  readonly requests: Map<number, RequestTally>;
}

const STATUSES = 1000;

interface RequestTally {
  readonly labels: { readonly route: string; readonly method: string; readonly code: string };
  /** Not yet added to the counter. */
  uncounted: number;
}

/**
 * Once per registry.
 * @param certificates of the same registry.
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
  const protocols = createTallies(
    registry,
    {
      // Users rely on the labels of `token_sidecar_proxy_requests_total`, so this is separate.
      name: 'token_sidecar_proxy_requests_by_protocol_total',
      help: 'Requests that have ended, by the versions of HTTP that they came and left by; none if they did not leave.',
    },
    PROTOCOL_LABELS,
  );
  const grpcCalls = createTallies(
    registry,
    {
      name: 'token_sidecar_proxy_grpc_calls_total',
      help: 'gRPC calls that have ended, by grpc-status; none if the app got no status.',
    },
    GRPC_LABELS,
  );
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
    help: 'Answers 401 of the upstream to an injected token, and gRPC calls that it ended as UNAUTHENTICATED (16); without those that refuse a DPoP proof.',
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
    const grpc = grpcCalls.forRoute(route);
    const tally: Tally = {
      total: 0,
      inFlight: 0,
      errors: 0,
      errorsByCode: new Map(),
      durations: duration,
      refusedTokens: 0,
      grpcCalls: 0,
      grpcFailures: 0,
      requests: new Map(),
    };
    tallies.set(route, tally);
    const refusedTokens = unauthorized.labels({ route });
    const replayed = {
      success: replays.labels({ route, result: 'success' }),
      failure: replays.labels({ route, result: 'failure' }),
    };
    // At zero, so that `rate()` sees the first 401.
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
      protocol.count(indexOfProtocols(request.protocol, upstream));
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
      grpcEnded(status) {
        const index = indexOfGrpc(status);
        grpc.count(index);
        tally.grpcCalls += 1;
        if (index !== GRPC_STATUS.OK && index !== NO_GRPC) tally.grpcFailures += 1;
      },
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
      grpcCalls.forget(route);
      return true;
    },
    stats: () => new Map([...tallies].map(([route, tally]) => [route, figuresOf(tally)])),
  };
}

function figuresOf({ total, inFlight, errors, refusedTokens, ...tally }: Tally): RouteStats {
  return {
    total,
    inFlight,
    errors,
    refusedTokens,
    classes: tally.durations.classes(),
    durations: tally.durations.buckets(),
    errorsByCode: new Map(tally.errorsByCode),
    grpc: { calls: tally.grpcCalls, failures: tally.grpcFailures },
  };
}

/** A series begins with its first event. */
function createUpstreamMetrics(
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

class IndexedTally<Name extends string> {
  readonly #labels: readonly Readonly<Record<Name, string>>[];
  /** By label index: not yet added to the counter. */
  readonly #uncounted: Float64Array;

  constructor(labels: readonly Readonly<Record<Name, string>>[]) {
    this.#labels = labels;
    this.#uncounted = new Float64Array(labels.length);
  }

  count(index: number): void {
    this.#uncounted[index] = (this.#uncounted[index] as number) + 1;
  }

  take(add: (labels: Readonly<Record<Name, string>>, count: number) => void): void {
    for (const [index, count] of this.#uncounted.entries()) {
      if (count === 0) continue;
      this.#uncounted[index] = 0;
      add(this.#labels[index] as Readonly<Record<Name, string>>, count);
    }
  }
}

interface Tallies<Name extends string> {
  forRoute(route: string): IndexedTally<Name>;
  forget(route: string): void;
}

/** @param labels one set for each index, beside the route. */
function createTallies<Name extends string>(
  registry: Registry,
  { name, help }: { readonly name: string; readonly help: string },
  labels: readonly Readonly<Record<Name, string>>[],
): Tallies<Name> {
  const tallies = new Map<string, IndexedTally<Name>>();
  new Counter({
    name,
    help,
    labelNames: ['route', ...Object.keys(labels[0] ?? {})],
    registers: [registry],
    collect() {
      for (const [route, tally] of tallies) {
        tally.take((others, count) => this.inc({ route, ...others }, count));
      }
    },
  });
  return {
    forRoute(route) {
      const tally = new IndexedTally(labels);
      tallies.set(route, tally);
      return tally;
    },
    forget: (route) => tallies.delete(route),
  };
}

const APP_PROTOCOLS: readonly Protocol[] = ['http1', 'h2'];
/** `none`: unsent, or a tunnel. */
const UPSTREAM_PROTOCOLS = ['none', 'http1', 'h2'] as const;
const PROTOCOL_LABELS = APP_PROTOCOLS.flatMap((protocol) =>
  UPSTREAM_PROTOCOLS.map((upstream_protocol) => ({ protocol, upstream_protocol })),
);

function indexOfProtocols(app: Protocol, upstream: Protocol | undefined): number {
  return (
    (app === 'h2' ? UPSTREAM_PROTOCOLS.length : 0) + (upstream === undefined ? 0 : upstream === 'h2' ? 2 : 1)
  );
}

/** Statuses that gRPC does not define share one label. */
const GRPC_LABELS = [...Object.values(GRPC_STATUS).map(String), 'other', 'none'].map((grpc_status) => ({
  grpc_status,
}));
const OTHER_GRPC = GRPC_LABELS.length - 2;
const NO_GRPC = GRPC_LABELS.length - 1;

function indexOfGrpc(status: GrpcStatus | undefined): number {
  return status === undefined ? NO_GRPC : status === 'other' ? OTHER_GRPC : status;
}

/** Those that end only a stream, or come from upstreams. */
const NOT_OF_APPS: ReadonlySet<string> = new Set(['fields_too_large', 'interim_flood']);

/** Once per registry. */
function http2AbuseCounter(registry: Registry): (kind: string) => void {
  const counter = new Counter({
    name: 'token_sidecar_proxy_http2_abuse_total',
    help: 'HTTP/2 connections of the app that were ended because they asked for more than they may.',
    labelNames: ['kind'] as const,
    registers: [registry],
  });
  // So that `rate()` sees the first increase.
  for (const kind of Object.keys(FAULTS)) {
    const ends = codeOf(kind as FaultReason) === ErrorCode.ENHANCE_YOUR_CALM && !NOT_OF_APPS.has(kind);
    if (ends) counter.labels({ kind }).inc(0);
  }
  return (kind) => counter.labels({ kind }).inc();
}

/** Once per registry. */
function redirectedCounter(registry: Registry): (result: string) => void {
  const counter = new Counter({
    name: 'token_sidecar_proxy_redirected_connections_total',
    help: 'Redirected connections: listed get the token, passed go on as they are, refused found nobody there, left ended before any of these.',
    labelNames: ['result'] as const,
    registers: [registry],
  });
  return (result) => counter.labels({ result }).inc();
}
