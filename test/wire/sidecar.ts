import { Registry } from '@prometheus-io/client';
import { expect, onTestFinished } from 'vitest';
import type {
  AccessLogConfig,
  AllowedDestination,
  CaptureConfig,
  ForwardProxyConfig,
  ProxyLimits,
  RedirectConfig,
  RouteConfig,
  RouteTimeouts,
  Upstream,
} from '../../src/config/config.ts';
import { createLogger } from '../../src/platform/log/logger.ts';
import { type Clock, systemClock } from '../../src/platform/time/clock.ts';
import type { FindOriginalDst } from '../../src/proxy/capture/redirected.ts';
import type { DataPath, ServingOptions, Superseded } from '../../src/proxy/data-path.ts';
import type { Network } from '../../src/proxy/io/network.ts';
import type { Tracer } from '../../src/proxy/recording/request-recorder.ts';
import { startProxy } from '../../src/proxy/start-proxy.ts';
import type { LeafCertificates } from '../../src/proxy/tls/interception-ca.ts';
import type { TokenProvider } from '../../src/token/bearer-source.ts';
import { leakedIn } from '../support/leaked.ts';
import { testProxyMetrics } from '../support/proxy-metrics.ts';
import { until } from '../support/until.ts';
import { FakeBearer, TOKEN_MARK } from './fake-bearer.ts';
import { get } from './messages.ts';
import { type Answer, connectClient, type RawClient } from './raw-client.ts';

/** Generous: a test of a timeout sets its own. */
export const TIMEOUTS: RouteTimeouts = { connectMs: 10_000, responseMs: 10_000, idleMs: 10_000 };

const LIMITS: ProxyLimits = {
  headerBytes: 16_384,
  headerCount: 100,
  targetBytes: 8192,
  requestBodyBytes: 0,
  replayBytes: 1024,
  maxInFlight: 1000,
  headerTimeoutMs: 10_000,
  keepAliveTimeoutMs: 10_000,
  http2: { maxStreams: 100, streamWindowBytes: 65_536, connectionWindowBytes: 100 * 65_536 },
};

export interface RouteOverrides extends Partial<Omit<RouteConfig, 'match' | 'timeouts' | 'upstream'>> {
  readonly match?: Partial<RouteConfig['match']>;
  readonly timeouts?: Partial<RouteTimeouts>;
  readonly upstream?: Partial<Upstream>;
}

/** What there is to know of an upstream: a real one, or nobody's address. */
interface Destination {
  readonly address: DataPath['address'];
  readonly protocol?: 'http' | 'https';
  /** Who is trusted to name it, where that is not the system's trust. */
  readonly caFile?: string | undefined;
}

/** A route to the upstream for every path, unless told otherwise. */
export function routeTo(
  { address, protocol, caFile }: Destination,
  overrides: RouteOverrides = {},
): RouteConfig {
  return {
    name: 'api',
    stripPrefix: false,
    credential: 'default',
    existingAuthorization: 'replace',
    whenTokenUnavailable: 'fail',
    retryOn401: true,
    tls: caFile === undefined ? {} : { caFile },
    protocol: 'auto',
    ...overrides,
    match: { pathPrefix: '/', ...overrides.match },
    timeouts: { ...TIMEOUTS, ...overrides.timeouts },
    upstream: {
      protocol: protocol ?? 'http',
      host: address.host,
      port: address.port,
      authority: `${address.host}:${address.port}`,
      basePath: '',
      ...overrides.upstream,
    },
  };
}

/** A forward proxy whose list is the upstream's address, unless told otherwise. */
export function forwardTo(
  { address, protocol, caFile }: Destination,
  entry: Partial<AllowedDestination> = {},
  settings: Partial<ForwardProxyConfig> = {},
): ForwardProxyConfig {
  return {
    allow: [
      {
        host: address.host,
        port: address.port,
        upgradeToTls: protocol === 'https',
        credential: 'default',
        existingAuthorization: 'replace',
        whenTokenUnavailable: 'fail',
        retryOn401: true,
        timeouts: TIMEOUTS,
        tls: caFile === undefined ? {} : { caFile },
        protocol: 'auto',
        ...entry,
      },
    ],
    otherHosts: 'deny',
    connect: 'deny',
    timeouts: TIMEOUTS,
    ...settings,
  };
}

export interface SidecarSettings {
  /** One route to it, shaped by `route`; or give `routes`. */
  readonly upstream?: Destination;
  readonly route?: RouteOverrides;
  readonly routes?: readonly RouteConfig[];
  readonly forwardProxy?: ForwardProxyConfig;
  readonly capture?: CaptureConfig;
  readonly redirect?: RedirectConfig;
  readonly findOriginal?: FindOriginalDst;
  readonly crossSiteRequests?: 'allow' | 'refuse';
  /** Certificates for apps whose TLS is intercepted. */
  readonly leaves?: Pick<LeafCertificates, 'contextFor'>;
  /** Of the same program. */
  readonly otherListeners?: readonly DataPath['address'][];
  /** The system's unless told otherwise. */
  readonly network?: Network;
  readonly limits?: Partial<ProxyLimits>;
  readonly accessLog?: AccessLogConfig;
  readonly tracer?: Tracer;
  /** Behind the credential `default`. */
  readonly bearer?: FakeBearer;
  readonly bearers?: ReadonlyMap<string, TokenProvider>;
  readonly instanceId?: string;
  /** The system's unless told otherwise. */
  readonly clock?: Clock;
  /** A free port of loopback unless told otherwise. */
  readonly listen?: DataPath['address'];
}

export class Sidecar {
  readonly proxy: DataPath;
  /** Every log line, down to `trace`. */
  readonly logLines: readonly string[];
  /** As OpenMetrics has them behind samples. */
  readonly exemplars: () => ReadonlyMap<string, string>;
  readonly #registry: Registry;

  constructor(
    proxy: DataPath,
    registry: Registry,
    logLines: readonly string[],
    exemplars: () => ReadonlyMap<string, string>,
  ) {
    this.exemplars = exemplars;
    this.proxy = proxy;
    this.logLines = logLines;
    this.#registry = registry;
  }

  get address(): DataPath['address'] {
    return this.proxy.address;
  }

  /** Has it serve by these settings; what they say of listeners and network counts only at the start. */
  reconfigure(settings: SidecarSettings): Promise<Superseded> {
    return this.proxy.reconfigure(serving(settings));
  }

  connect(): Promise<RawClient> {
    return connectClient(this.address);
  }

  /** Sends the bytes on a connection of their own and resolves to the answer. */
  async exchange(bytes: string | Buffer, method?: string): Promise<Answer> {
    const client = await this.connect();
    return client.send(bytes).response(method);
  }

  /**
   * A round trip on a fresh connection, for `/fence`. Whatever an earlier request was going to send upstream was sent
   * before it or will never be: the sidecar has seen that request's end.
   */
  fence(): Promise<Answer> {
    return this.exchange(get('/fence', 'Connection: close'));
  }

  /** Sum of the metric's values that carry the labels; of a histogram, its count. */
  async metric(name: string, labels: Record<string, string> = {}): Promise<number> {
    const metrics = await this.#registry.getMetricsAsJSON();
    const metric = metrics.find((candidate) => candidate.name === `token_sidecar_${name}`);
    if (metric === undefined) throw new Error(`no metric is named ${name}`);
    return (metric.values as readonly Sample[])
      .filter((sample) => sample.metricName === undefined || !/_(bucket|sum)$/.test(sample.metricName))
      .filter((sample) =>
        Object.entries(labels).every(([label, value]) => String(sample.labels[label]) === value),
      )
      .reduce((sum, { value }) => sum + value, 0);
  }

  /** All metrics as Prometheus reads them. */
  metrics(): Promise<string> {
    return this.#registry.metrics();
  }

  /** Resolves when nothing is in flight. Call it once the sidecar has seen the request. */
  async idle(): Promise<void> {
    await until(async () => (await this.metric('proxy_requests_in_flight')) === 0);
  }
}

interface Sample {
  readonly value: number;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly metricName?: string;
}

function serving(settings: SidecarSettings): ServingOptions {
  return {
    routes: settings.routes ?? (settings.upstream ? [routeTo(settings.upstream, settings.route)] : []),
    ...(settings.forwardProxy === undefined ? {} : { forwardProxy: settings.forwardProxy }),
    ...(settings.capture === undefined ? {} : { capture: settings.capture }),
    ...(settings.redirect === undefined ? {} : { redirect: settings.redirect }),
    crossSiteRequests: settings.crossSiteRequests ?? 'allow',
    limits: { ...LIMITS, ...settings.limits },
    ...(settings.accessLog === undefined ? {} : { accessLog: settings.accessLog }),
    bearers: settings.bearers ?? new Map([['default', settings.bearer ?? new FakeBearer()]]),
  };
}

/** Starts the real data path on loopback; it is cut off when the test is over, and no log line may hold a token or proof. */
export async function startSidecar(settings: SidecarSettings): Promise<Sidecar> {
  const logLines: string[] = [];
  const registry = new Registry();
  const metrics = testProxyMetrics(registry);
  const proxy = await startProxy({
    listen: settings.listen ?? { host: '127.0.0.1', port: 0 },
    ...serving(settings),
    ...(settings.leaves === undefined ? {} : { leaves: settings.leaves }),
    ...(settings.otherListeners === undefined ? {} : { otherListeners: settings.otherListeners }),
    ...(settings.findOriginal === undefined ? {} : { findOriginal: settings.findOriginal }),
    ...(settings.tracer === undefined ? {} : { tracer: settings.tracer }),
    ...(settings.network === undefined ? {} : { network: settings.network }),
    metrics,
    clock: settings.clock ?? systemClock,
    log: createLogger('trace', { write: (line) => logLines.push(line) }),
    instanceId: settings.instanceId ?? 'wire-instance',
  });
  onTestFinished(async () => {
    await proxy.drain(0);
    expect(leakedIn(logLines.join(''), [TOKEN_MARK])).toEqual([]);
  });
  return new Sidecar(proxy, registry, logLines, metrics.exemplars);
}
