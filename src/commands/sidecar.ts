/** The sidecar, wired: what `proxy` runs, and `demo` among other things. */

import { randomBytes } from 'node:crypto';
import type { LookupFunction } from 'node:net';
import { type AdminServer, startAdminServer } from '../admin/admin-server.ts';
import { metricsEndpoint } from '../admin/metrics-endpoint.ts';
import { type MissingPart, probes } from '../admin/probes.ts';
import { registerProcessMetrics } from '../admin/process-metrics.ts';
import { quitEndpoint } from '../admin/quit.ts';
import { readStatus } from '../admin/status.ts';
import { statusEndpoint, statusPageEndpoint } from '../admin/status-page.ts';
import { createCertificateMetrics } from '../certificate-metrics.ts';
import { type Clock, systemClock } from '../clock.ts';
import type { Config, CredentialConfig, ListenAddress } from '../config/config.ts';
import { interceptedNames } from '../config/resolve-interception.ts';
import { formatAddress } from '../config/values.ts';
import { createCredentialsMetrics } from '../credentials/metrics.ts';
import { messageOf, SidecarError, systemCodeOf } from '../errors.ts';
import type { Logger } from '../log/logger.ts';
import type { LogLosses } from '../log/output.ts';
import { Registry } from '../prometheus.ts';
import type { DataPath, ProxyOptions } from '../proxy/data-path.ts';
import { networkWithLookup } from '../proxy/io/network.ts';
import { createProxyMetrics } from '../proxy/metrics.ts';
import { startProxy } from '../proxy/start-proxy.ts';
import type { Leaves } from '../proxy/tls/termination.ts';
import { exchangesForRequests } from '../token/grants/token-exchange.ts';
import { openLiveCredentials } from '../token/live-credentials.ts';
import { createTokenMetrics } from '../token/metrics.ts';
import { createTokenEndpoint } from '../token/provider/token-endpoint.ts';
import { openTokenSource, type TokenSource } from '../token/token-source.ts';
import { whyNoToken } from '../token/why-no-token.ts';

import type { Outputs } from './outputs.ts';

export interface Sidecar {
  readonly proxyAddress: ListenAddress;
  readonly adminAddress: ListenAddress;
  /** Where tokens are given to programs of the pod; undefined where no credential is. */
  readonly tokenEndpoint: ListenAddress | undefined;
  /** Resolves once every credential that is required has had its first token; never rejects. */
  readonly ready: Promise<void>;
  readonly tokens: readonly TokenSource[];
  /**
   * Readiness goes off; requests are served for as long as the app is there, then drained. All of it within the
   * configured bound. Safe to call again.
   */
  stop(): Promise<void>;
}

export interface SidecarOptions {
  readonly config: Config;
  readonly log: Logger;
  /** Counted beside the process's other metrics. */
  readonly logLosses?: LogLosses;
  /** What `POST /quitquitquit` does. */
  readonly quit: () => void;
  /** The system's unless given. */
  readonly clock?: Clock;
  /** Numbers in [0, 1) for jitter. */
  readonly random?: () => number;
}

/** How often the Secret is read whether or not a notification came. */
const SECRET_POLL_MS = 30_000;

export async function startSidecar(options: SidecarOptions): Promise<Sidecar> {
  const { config, log, quit, clock = systemClock, random = Math.random } = options;
  const startedAtMs = clock.now().wallMs;
  const registry = new Registry();
  const adminMetrics = registerProcessMetrics(registry, options.logLosses);
  const tokenMetrics = createTokenMetrics(registry);
  const credentialsMetrics = createCredentialsMetrics(registry);
  const certificateMetrics = createCertificateMetrics(registry);
  const proxyMetrics = createProxyMetrics(registry, certificateMetrics);

  async function openCredential(credential: CredentialConfig): Promise<TokenSource> {
    const credentials = await openLiveCredentials(credential, { clock, pollMs: SECRET_POLL_MS });
    const parts = {
      config: credential,
      credentials,
      endpoint: createTokenEndpoint(credential, clock, lookup, undefined, certificateMetrics),
      clock,
      metrics: tokenMetrics,
      credentialsMetrics,
      log,
    };
    if (!exchangesForRequests(credential)) return openTokenSource({ ...parts, random });
    const { openSubjectSource } = await import('../token/exchange/subject-source.ts');
    return openSubjectSource(parts);
  }

  const lookup = await openLookup(config, clock);
  // The first grants are on their way while the listeners come up.
  const tokens = await Promise.all(config.credentials.map(openCredential));
  const closeTokens = () => Promise.all(tokens.map((token) => token.close()));

  /** Those that the pod cannot do without. */
  const required = tokens.filter((_, index) => config.credentials[index]?.required !== false);
  const ready = Promise.all(required.map((token) => token.firstToken)).then(() => undefined);

  let proxy: DataPath | undefined;
  let draining = false;
  const health = {
    draining: () => draining,
    whenStarted: () => ready,
    started: () => required.every((token) => token.snapshot().obtainedFirstToken),
    missing: () => [
      ...(proxy === undefined ? [LISTENER_MISSING] : []),
      ...config.credentials.flatMap((credential, index) => missingToken(credential, tokens[index])),
    ],
  };
  let admin: AdminServer | undefined;
  let outputs: Outputs | undefined;
  try {
    // Before any probe is answered: apps that it lets start find what to trust.
    const leaves = await openLeaves(config, clock, log);
    const findOriginal = await openRedirect(config, log);
    if (config.credentials.some(({ output }) => output !== undefined)) {
      const { openOutputs } = await import('./outputs.ts');
      outputs = await openOutputs(config, tokens, clock, log);
    }
    admin = await startAdminServer(
      config.admin.listen,
      {
        ...probes(health),
        '/metrics': metricsEndpoint(registry),
        '/': statusPageEndpoint,
        '/api/status': statusEndpoint(() =>
          readStatus({
            config,
            tokens,
            requests: () => proxyMetrics.traffic(),
            spoken: () => proxy?.spoken() ?? new Map(),
            draining: health.draining,
            startedAtMs,
            nowMs: () => clock.now().wallMs,
          }),
        ),
        '/quitquitquit': quitEndpoint(quit),
      },
      log,
      { hosts: config.admin.hosts, metrics: adminMetrics },
    );
    proxy = await startProxy({
      listen: config.listen,
      routes: config.routes,
      ...(config.forwardProxy === undefined ? {} : { forwardProxy: config.forwardProxy }),
      ...(config.capture === undefined ? {} : { capture: config.capture }),
      ...(config.redirect === undefined ? {} : { redirect: config.redirect }),
      ...(findOriginal === undefined ? {} : { findOriginal }),
      otherListeners: [admin.address, outputs?.address].filter((address) => address !== undefined),
      ...(leaves === undefined ? {} : { leaves }),
      ...(lookup === undefined ? {} : { network: networkWithLookup(lookup) }),
      crossSiteRequests: config.crossSiteRequests,
      limits: config.limits,
      bearers: new Map(tokens.map((token) => [token.name, token])),
      metrics: proxyMetrics,
      clock,
      log,
      instanceId: randomBytes(8).toString('hex'),
    });
  } catch (error) {
    await Promise.all([admin?.close(), outputs?.close(), closeTokens()]);
    throw error;
  }

  const running = { admin, proxy, outputs };
  log.info(
    {
      proxy: formatAddress(proxy.address),
      admin: formatAddress(admin.address),
      routes: config.routes.length,
    },
    'listening',
  );
  void ready.then(() => log.info(startupFigures(required), 'ready'));

  async function stop(): Promise<void> {
    draining = true;
    const { drainTimeoutMs } = config.shutdown;
    const beganAtMs = clock.now().monotonicMs;
    log.info({ drainTimeoutMs }, 'draining');
    // An app that ends at the same moment still needs its tokens: it is served until it has hung up.
    await running.proxy.whenUnused(drainTimeoutMs * 0.8);
    await running.proxy.drain(Math.max(0, drainTimeoutMs - (clock.now().monotonicMs - beganAtMs)));
    await Promise.all([running.admin.close(), running.outputs?.close(), closeTokens()]);
    log.info('stopped');
  }

  let stopped: Promise<void> | undefined;
  return {
    proxyAddress: proxy.address,
    adminAddress: admin.address,
    tokenEndpoint: outputs?.address,
    ready,
    tokens,
    stop: () => {
      stopped ??= stop();
      return stopped;
    },
  };
}

/** @throws {SidecarError} `configuration` where the directory cannot be written. */
async function openLeaves(config: Config, clock: Clock, log: Logger): Promise<Leaves | undefined> {
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

/**
 * How addresses are found where hosts are captured: this program listens at those that the hosts file has of them.
 * @throws {SidecarError} `configuration` where resolv.conf cannot be read.
 */
async function openLookup({ capture }: Config, clock: Clock): Promise<LookupFunction | undefined> {
  if (capture === undefined) return undefined;
  const { lookupPastHostsFile } = await import('../dns/past-hosts-file.ts');
  try {
    return await lookupPastHostsFile(new Set(capture.hosts.map(({ host }) => host)), clock);
  } catch (error) {
    throw new SidecarError(
      'configuration',
      `/etc/resolv.conf cannot be read, and captured hosts are found by DNS alone: ${systemCodeOf(error) ?? messageOf(error)}`,
      { cause: error },
    );
  }
}

/**
 * How the system is asked where redirected connections were going.
 * @throws {SidecarError} `configuration` where Node cannot ask it.
 */
async function openRedirect({ redirect }: Config, log: Logger): Promise<ProxyOptions['findOriginal']> {
  if (redirect === undefined) return undefined;
  const { openOriginalDestination } = await import('../netfilter/original-destination.ts');
  const findOriginal = openOriginalDestination();
  log.info(
    { port: redirect.port },
    'redirected connections are served here, once `token-sidecar redirect` sends them',
  );
  return findOriginal;
}

const LISTENER_MISSING: MissingPart = { part: 'listener', name: 'proxy', detail: 'not listening yet' };

function missingToken(config: CredentialConfig, token: TokenSource | undefined): MissingPart[] {
  const shown = token?.snapshot();
  if (shown === undefined || !shown.required || shown.ready) return [];
  const { name, lastFailure } = shown;
  const unusable = shown.credentials.detail;
  const isNew = unusable === undefined && lastFailure === undefined;
  const detail = isNew
    ? 'no token has been obtained yet'
    : whyNoToken(config, { unusable, lastFailure }).message;
  return [{ part: 'credential', name, detail }];
}

/** Start-up time, with the part of it that was spent waiting for the provider told apart. Milliseconds. */
function startupFigures(tokens: readonly TokenSource[]): Record<string, number> {
  const sinceStartMs = Math.round(performance.now());
  const grants = tokens.map((token) => token.snapshot().history.at(-1)?.durationMs ?? 0);
  const tokenRoundTripMs = Math.round(Math.max(0, ...grants));
  return { sinceStartMs, tokenRoundTripMs, ownMs: sinceStartMs - tokenRoundTripMs };
}
