import { randomBytes } from 'node:crypto';
import { startAdminServer } from '../admin/admin-server.ts';
import { metricsEndpoint } from '../admin/metrics-endpoint.ts';
import { type MissingPart, probes, quitEndpoint } from '../admin/probes.ts';
import { registerProcessMetrics } from '../admin/process-metrics.ts';
import type { Config } from '../config/config.ts';
import { interceptedNames } from '../config/resolve-hosts.ts';
import type { TracingConfig } from '../config/resolve-tracing.ts';
import { OPEN_LISTENER, openListener } from '../config/sidecar-listeners.ts';
import { messageOf, SidecarError, systemCodeOf } from '../platform/errors.ts';
import { type Logger, setLogLevel } from '../platform/log/logger.ts';
import type { LogLosses } from '../platform/log/output.ts';
import { createCredentialsMetrics } from '../platform/mounted/metrics.ts';
import { formatAddress, type ListenAddress } from '../platform/net/address.ts';
import { drainShares } from '../platform/process/shutdown.ts';
import { Registry } from '../platform/prometheus.ts';
import { type Clock, systemClock } from '../platform/time/clock.ts';
import { loggedCertificateMetrics } from '../platform/x509/certificate-metrics.ts';
import type { DataPath, ProxyOptions } from '../proxy/data-path.ts';
import { BUCKETS_SECONDS } from '../proxy/duration-histogram.ts';
import { networkWithLookup } from '../proxy/io/network.ts';
import { createProxyMetrics } from '../proxy/metrics.ts';
import { startProxy } from '../proxy/start-proxy.ts';
import type { LeafCertificates } from '../proxy/tls/interception-ca.ts';
import { createTokenMetrics } from '../token/metrics.ts';
import type { TokenSource } from '../token/token-source.ts';
import { type InUse, openLookups, servingOf } from './configuration.ts';
import { required, sidecarHealth } from './health.ts';
import type { Outputs } from './outputs.ts';
import type { FollowedFile } from './reload/follow-file.ts';
import { readPod } from './status/pod.ts';
import type { Pod } from './status/report.ts';
import { TrafficHistory } from './status/traffic-history.ts';
import { statusEndpoints } from './status-endpoints.ts';
import { TokenSources } from './token-sources.ts';

export interface Sidecar {
  readonly proxyAddress: ListenAddress;
  readonly adminAddress: ListenAddress;
  readonly tokenEndpoint: ListenAddress | undefined;
  /** Resolves once every required credential has had a token; never rejects. */
  readonly ready: Promise<void>;
  /** In use now. */
  readonly config: Config;
  readonly tokens: readonly TokenSource[];
  reload(): void;
  /**
   * Readiness goes off; requests are served while the app is there, then drained, within the configured bound. Safe to
   * call again.
   */
  stop(): Promise<void>;
}

export interface SidecarOptions {
  readonly config: Config;
  readonly file?: FileToFollow;
  readonly log: Logger;
  readonly accessLogger?: Logger;
  /** Absent: no spans. */
  readonly tracing?: TracingConfig;
  /** Absent if the callers are the pod's own app. */
  readonly frontend?: Frontend;
  readonly logLosses?: LogLosses;
  /** For the status page. */
  readonly pod?: Pod;
  /** For `POST /quitquitquit`. */
  readonly quit: () => void;
  readonly clock?: Clock;
  /** Numbers in [0, 1) for jitter. */
  readonly random?: () => number;
}

/** For callers from other pods. */
export interface Frontend {
  readonly listen: ListenAddress;
  /** @throws {ConfigurationError} if a file cannot be used. */
  open(surroundings: FrontendDependencies): Promise<OpenFrontend>;
}

interface FrontendDependencies {
  readonly registry: Registry;
  readonly clock: Clock;
  readonly log: Logger;
}

interface OpenFrontend {
  readonly connectionHandler: ProxyOptions['connectionHandler'];
  use(config: Config): void;
  /** Why nobody could be served now. */
  missing(): readonly MissingPart[];
  close(): Promise<void>;
}

interface FileToFollow {
  readonly path: string;
  /** When `config` was read, if known. */
  readonly text: string | undefined;
  /**
   * @param text is read when absent.
   * @throws {ConfigurationError} with every problem.
   */
  readonly load: (text?: string) => Promise<Config>;
}

/** A collector that is away must not hold up the pod. */
const MAX_FOR_SPANS_MS = 2000;

/** Closed in reverse order if the rest cannot be opened. */
type Closers = (() => Promise<void> | void)[];

export async function startSidecar(options: SidecarOptions): Promise<Sidecar> {
  const closers: Closers = [];
  try {
    return await openSidecar(options, closers);
  } catch (error) {
    for (const close of closers.reverse()) await close();
    throw error;
  }
}

async function openSidecar(options: SidecarOptions, closers: Closers): Promise<Sidecar> {
  const { config, log, quit, clock = systemClock, random = Math.random } = options;
  const startedAtMs = clock.now().wallMs;
  const registry = new Registry();
  const adminMetrics = registerProcessMetrics(registry, options.logLosses);
  const tokenMetrics = createTokenMetrics(registry);
  const credentialsMetrics = createCredentialsMetrics(registry);
  const certificateMetrics = loggedCertificateMetrics(registry, log);
  const proxyMetrics = createProxyMetrics(registry, certificateMetrics);

  const lookups = await openLookups(config, clock);
  const lookup = lookups?.own;
  const tracing =
    options.tracing === undefined
      ? undefined
      : (await import('./tracing/tracing.ts')).openTracing(options.tracing, log, { lookup });
  closers.push(() => tracing?.close(MAX_FOR_SPANS_MS));
  const history = new TrafficHistory({ stats: proxyMetrics.stats, bounds: BUCKETS_SECONDS, clock });
  closers.push(() => history.close());
  const sources = new TokenSources({
    clock,
    random,
    metrics: tokenMetrics,
    credentialsMetrics,
    certificateMetrics,
    log,
    lookup,
    tracer: tracing?.grants,
  });
  closers.push(() => sources.close());
  let inUse: InUse = { config, credentials: await sources.open(config.credentials) };
  sources.show(inUse.credentials);

  let proxy: DataPath | undefined;
  let file: FollowedFile | undefined;
  let draining = false;
  const health = sidecarHealth({
    inUse: () => inUse.credentials,
    listening: () => proxy !== undefined,
    draining: () => draining,
    frontendMissing: () => frontend?.missing() ?? [],
    nowMs: () => clock.now().wallMs,
  });
  health.look();
  let outputs: Outputs | undefined;
  let frontend: OpenFrontend | undefined;
  frontend = await options.frontend?.open({ registry, clock, log });
  closers.push(() => frontend?.close());
  frontend?.use(config);
  // Before any probe is answered: apps that it lets start need the files.
  const leaves = await openLeaves(config, clock, log);
  const findOriginal = await openRedirect(config, log);
  if (config.credentials.some(({ output }) => output !== undefined)) {
    const { openOutputs } = await import('./outputs.ts');
    outputs = await openOutputs(config, inUse.credentials, { registry, clock, log });
    closers.push(outputs.close);
  }
  const admin = await startAdminServer(
    config.admin.listen,
    {
      ...probes(health),
      '/metrics': metricsEndpoint(registry, () => proxyMetrics.exemplars()),
      ...statusEndpoints(
        {
          config: () => inUse.config,
          credentials: () => inUse.credentials,
          configuration: () => file?.status(),
          stats: proxyMetrics.stats,
          history,
          spoken: () => proxy?.spoken() ?? new Map(),
          refusedHosts: () => proxy?.refusedHosts() ?? [],
          fileTroubles: () => outputs?.troubles() ?? [],
          draining: health.draining,
          logLevel: () => log.level,
          pod: options.pod ?? readPod({}),
          startedAtMs,
          nowMs: () => clock.now().wallMs,
        },
        {
          renew: (name) => inUse.credentials.find(({ source }) => source.name === name)?.source.renew(),
          setLogLevel(level) {
            setLogLevel(log, level);
            log.info({ level }, 'the log level was changed by the status page');
          },
        },
      ),
      '/quitquitquit': quitEndpoint(quit),
    },
    log,
    { hosts: config.admin.hosts, metrics: adminMetrics },
  );
  closers.push(admin.close);
  proxy = await startProxy({
    ...servingOf(inUse),
    listen: options.frontend?.listen ?? config.listen,
    ...(frontend?.connectionHandler === undefined ? {} : { connectionHandler: frontend.connectionHandler }),
    ...(findOriginal === undefined ? {} : { findOriginal }),
    otherListeners: [admin.address, outputs?.address].filter((address) => address !== undefined),
    ...(leaves === undefined ? {} : { leaves }),
    ...(lookups === undefined ? {} : { network: networkWithLookup(lookups.ofUpstreams, lookups.names) }),
    metrics: proxyMetrics,
    clock,
    log,
    ...(tracing === undefined ? {} : { tracer: tracing.tracer }),
    ...(options.accessLogger === undefined ? {} : { accessLogger: options.accessLogger }),
    instanceId: randomBytes(8).toString('hex'),
  });
  closers.push(() => proxy?.drain(0));
  if (options.file !== undefined) {
    const { followConfigFile } = await import('./reload/follow-file.ts');
    const { reconfigurable } = await import('./reconfigure.ts');
    const target = reconfigurable({
      inUse: () => inUse,
      use(next) {
        inUse = next;
        sources.show(next.credentials);
        health.look();
        outputs?.follow(next.credentials);
        frontend?.use(next.config);
      },
      sources,
      proxy,
      tokenMetrics,
      proxyMetrics,
      registry,
      clock,
      log,
    });
    file = followConfigFile({ ...options.file, target, registry, clock, log });
  }

  const running = { proxy, outputs, frontend };
  log.info(
    {
      proxy: formatAddress(proxy.address),
      admin: formatAddress(admin.address),
      routes: config.routes.length,
    },
    'listening',
  );
  if (openListener(config) !== undefined) {
    log.warn({ proxy: formatAddress(proxy.address), remedy: OPEN_LISTENER.remedy }, OPEN_LISTENER.fault);
  }
  void health.ready.then(() => log.info(startupFigures(required(inUse.credentials)), 'ready'));

  async function stop(): Promise<void> {
    draining = true;
    file?.close();
    const { shutdown, gateway } = inUse.config;
    const { drainTimeoutMs } = shutdown;
    const beganAtMs = clock.now().monotonicMs;
    const shares = drainShares(drainTimeoutMs, {
      drainDelayMs: gateway?.drainDelayMs ?? 0,
      hasSpans: tracing !== undefined,
    });
    log.info({ drainTimeoutMs }, 'draining');
    const leftMs = () => Math.max(0, drainTimeoutMs - (clock.now().monotonicMs - beganAtMs));
    if (options.frontend !== undefined) {
      running.proxy.enterLameDuck();
      await new Promise<void>((resolve) => void clock.after(shares.delayMs, resolve));
    }
    // An app that ends at this moment still needs its tokens: it is served until it hangs up.
    const untilSpansMs = () => Math.max(0, leftMs() - shares.spansMs);
    await running.proxy.whenUnused(Math.max(0, untilSpansMs() - shares.drainMs));
    await running.proxy.drain(untilSpansMs());
    history.close();
    await Promise.all([
      admin.close(),
      running.outputs?.close(),
      running.frontend?.close(),
      // First, so that the last spans include those of abandoned grants.
      sources.close().then(() => tracing?.close(Math.min(MAX_FOR_SPANS_MS, leftMs()))),
    ]);
    log.info('stopped');
  }

  let stopped: Promise<void> | undefined;
  return {
    proxyAddress: proxy.address,
    adminAddress: admin.address,
    tokenEndpoint: outputs?.address,
    ready: health.ready,
    get config() {
      return inUse.config;
    },
    get tokens() {
      return inUse.credentials.map(({ source }) => source);
    },
    reload: () => file?.reload(),
    stop: () => {
      stopped ??= stop();
      return stopped;
    },
  };
}

/** Milliseconds; the wait for the provider is told apart. */
function startupFigures(tokens: readonly TokenSource[]): Record<string, number> {
  const sinceStartMs = Math.round(performance.now());
  const grants = tokens.map((token) => token.grants().latest.at(-1)?.durationMs ?? 0);
  const tokenRoundTripMs = Math.round(Math.max(0, ...grants));
  return { sinceStartMs, tokenRoundTripMs, ownMs: sinceStartMs - tokenRoundTripMs };
}

async function openLeaves(config: Config, clock: Clock, log: Logger): Promise<LeafCertificates | undefined> {
  const { interception } = config;
  if (interception === undefined) return undefined;
  const { directory } = interception;
  const { openInterception } = await import('./interception.ts');
  try {
    return await openInterception({ directory, names: interceptedNames(config), clock, log });
  } catch (error) {
    throw new SidecarError(
      'configuration',
      `interception.directory ${directory}: expected a directory that can be written (${systemCodeOf(error) ?? messageOf(error)})`,
      { cause: error },
    );
  }
}

/** @throws {SidecarError} `configuration` if Node cannot find out. */
async function openRedirect({ redirect }: Config, log: Logger): Promise<ProxyOptions['findOriginal']> {
  if (redirect === undefined) return undefined;
  const { openOriginalDestination } = await import('../redirect/netfilter/original-destination.ts');
  const findOriginal = openOriginalDestination();
  log.info(
    { port: redirect.port },
    'redirected connections are served here, once `token-sidecar redirect` sends them',
  );
  return findOriginal;
}
