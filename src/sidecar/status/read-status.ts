import { readMemoryUse } from '../../admin/process-metrics.ts';
import type { Config, CredentialConfig, ForwardingPolicy, RouteConfig } from '../../config/config.ts';
import { formatAddress } from '../../platform/net/address.ts';
import { REVISION, VERSION } from '../../platform/version.ts';
import type { RouteStats } from '../../proxy/metrics.ts';
import { credentialCondition } from '../../token/condition.ts';
import type { ProofReport } from '../../token/dpop/proof-maker.ts';
import type { PastGrants, TokenSnapshot } from '../../token/grant-report.ts';
import type { TokenFileTrouble } from '../../token/output/token-file.ts';
import type { TokenSource } from '../../token/token-source.ts';
import {
  type ConfigurationState,
  describeConfigurationState,
  problemsOfConfiguration,
  redactedSettings,
} from './configuration.ts';
import type {
  CredentialReport,
  ForwardProxyReport,
  HostReport,
  Pod,
  Problem,
  RequestTotals,
  RouteReport,
  StatusReport,
} from './report.ts';
import type { TrafficHistory } from './traffic-history.ts';
import { type FoundCredential, judge, levelOf, routeStanding } from './verdict.ts';

interface ExaminedCredential {
  readonly config: CredentialConfig;
  readonly source: Pick<TokenSource, 'snapshot' | 'grants'>;
}

export interface StatusSources {
  /** A reload replaces it. */
  config(): Config;
  credentials(): readonly ExaminedCredential[];
  /** By route name, since the start. */
  stats(): ReadonlyMap<string, RouteStats>;
  readonly history: Pick<TrafficHistory, 'recent' | 'lastMinute'>;
  /** By route name; undefined if unknown. */
  spoken(): ReadonlyMap<string, 'http1' | 'h2' | undefined>;
  refusedHosts(): readonly { readonly host: string; readonly times: number; readonly lastAtMs: number }[];
  fileTroubles(): readonly TokenFileTrouble[];
  draining(): boolean;
  logLevel(): string;
  /** Undefined if there is no file. */
  configuration(): ConfigurationState | undefined;
  readonly pod: Pod;
  readonly startedAtMs: number;
  nowMs(): number;
}

/** The name for unmatched requests. */
const NO_ROUTE = 'none';

export function readStatus(sources: StatusSources): StatusReport {
  const nowMs = sources.nowMs();
  const config = sources.config();
  const stats = sources.stats();
  const spoken = sources.spoken();
  const credentials = sources.credentials().map((each) => examine(each, nowMs));
  const found = credentials.map((each) => each.found);
  const hosts = hostsOf(config, stats, sources.history);
  const routes = [...config.routes, ...hosts].map(({ name, credential, whenTokenUnavailable }) => ({
    name,
    credential,
    whenTokenUnavailable,
    lastMinute: sources.history.lastMinute(name),
  }));
  const state = sources.configuration();
  const configuration = state && describeConfigurationState(state);
  const verdict = judge({
    nowMs,
    draining: sources.draining(),
    credentials: found,
    routes,
    others: [
      ...problemsOfConfiguration(configuration),
      ...sources.fileTroubles().map(problemOfFile),
      ...credentials.flatMap(({ report }) => problemOfProofs(report, nowMs)),
    ],
  });
  const standings = new Map(
    routes.map((route) => [route.name, routeStanding(route, { verdict, credentials: found })]),
  );
  const standing = (name: string) => standings.get(name) ?? { level: 'ok' as const, state: 'ready' as const };
  const forwardProxy = readForwardProxy(
    config,
    hosts.map(({ name, report }) => ({ ...report, ...standing(name) })),
    stats,
    sources,
  );
  return {
    version: VERSION,
    revision: REVISION,
    node: process.version,
    pod: sources.pod,
    at: toIso(nowMs),
    startedAt: toIso(sources.startedAtMs),
    uptimeSeconds: Math.floor((nowMs - sources.startedAtMs) / 1000),
    draining: sources.draining(),
    logLevel: sources.logLevel(),
    memory: readMemoryUse(),
    verdict,
    credentials: credentials.map(({ report }) => ({
      ...report,
      level: levelOf(verdict, 'credential', report.name),
    })),
    routes: config.routes.map((route) => ({
      ...describeRoute(route, stats.get(route.name), spoken.get(route.name)),
      ...standing(route.name),
      recent: sources.history.recent(route.name),
    })),
    ...(forwardProxy === undefined ? {} : { forwardProxy }),
    configuration,
    effectiveConfiguration: redactedSettings(config),
  };
}

function problemOfFile({ credential, path, code, sinceMs }: TokenFileTrouble): Problem {
  return {
    level: 'warning',
    about: { kind: 'credential', name: credential },
    what: `the file of the token of credential ${credential} has not been brought up to date`,
    since: toIso(sinceMs),
    reason: `the system said ${code ?? 'no code'} of ${path}`,
    next: 'its readers get the token before until that ends, and then none; it is tried again every 5 s',
    runbook: 'TokenSidecarTokenFileFailing',
  };
}

const RECENTLY_MS = 60_000;

function problemOfProofs(
  { name, proofOfPossession }: Omit<CredentialReport, 'level'>,
  nowMs: number,
): readonly Problem[] {
  const { lastRefusedAt, refusedProofs } = proofOfPossession ?? {};
  if (lastRefusedAt === undefined || nowMs - Date.parse(lastRefusedAt) >= RECENTLY_MS) return [];
  return [
    {
      level: 'warning',
      about: { kind: 'credential', name },
      what: `an upstream refuses the proofs of credential ${name}`,
      reason: `it answered 401 to a proof within the last minute, and ${refusedProofs} times since the start`,
      advice: 'look in the log for the route, and compare its URL and clock with those of the upstream',
      runbook: 'TokenSidecarProofsRefused',
    },
  ];
}

function examine(
  { config, source }: ExaminedCredential,
  nowMs: number,
): { readonly found: FoundCredential; readonly report: Omit<CredentialReport, 'level'> } {
  const token = source.snapshot();
  const condition = credentialCondition(config, token, nowMs);
  const { tokens, ready, name } = token;
  const refusesAll = tokens.kind === 'exchanged' && tokens.refusesAll;
  const found = { name, exchanges: tokens.kind === 'exchanged', serves: ready && !refusesAll, condition };
  const { state, sinceMs } = condition;
  const shown = describeCredential(token, source.grants(), config, nowMs);
  return { found, report: { ...shown, state, since: isoTime(sinceMs) } };
}

function describeCredential(
  token: TokenSnapshot,
  { latest, minutes }: PastGrants,
  config: CredentialConfig,
  nowMs: number,
): Omit<CredentialReport, 'level' | 'state' | 'since'> {
  const { lastFailure, credentials } = token;
  return {
    name: token.name,
    tokenUrl: token.tokenUrl,
    issuerUrl: config.issuerUrl,
    required: token.required,
    tokens: token.tokens.kind,
    openedAt: toIso(token.openedAtMs),
    ready: token.ready,
    requestedAt: isoTime(token.requestedAtMs),
    expiresAt: isoTime(token.expiresAtMs),
    expiresInSeconds:
      token.expiresAtMs === undefined ? undefined : Math.round((token.expiresAtMs - nowMs) / 1000),
    nextGrantAt: isoTime(token.renewalAtMs),
    nextGrantReason: token.renewalReason,
    grantInFlight: token.grantInFlight,
    consecutiveFailures: token.consecutiveFailures,
    failingSince: isoTime(token.failingSinceMs),
    lastFailure: lastFailure && {
      at: toIso(lastFailure.at.wallMs),
      result: lastFailure.result,
      detail: lastFailure.detail,
    },
    mountedCredentials: {
      state: credentials.state,
      detail: credentials.detail,
      previousInUse: credentials.previousInUse,
      watchedBy: credentials.watchedBy,
    },
    ...(token.proofs === undefined ? {} : { proofOfPossession: describeProofs(token.proofs, config) }),
    history: latest.map(({ atMs, reason, result, durationMs }) => ({
      at: toIso(atMs),
      reason,
      result,
      durationMs: Math.round(durationMs),
    })),
    timeline: minutes.map(({ atMs, succeeded, failed }) => ({ at: toIso(atMs), succeeded, failed })),
  };
}

function describeProofs(
  proofs: ProofReport,
  { dpop }: CredentialConfig,
): CredentialReport['proofOfPossession'] {
  return {
    method: 'dpop',
    key: dpop?.keyFile === undefined ? 'own' : 'mounted',
    thumbprint: proofs.thumbprint,
    holdsBearer: proofs.holdsBearer,
    proofs: proofs.made,
    nonces: proofs.noncesTaken,
    nonceRepeats: proofs.noncesWanted,
    refusedProofs: proofs.refused,
    lastRefusedAt: isoTime(proofs.lastRefusedAtMs),
  };
}

function describeRoute(
  route: RouteConfig,
  counted: RouteStats | undefined,
  speaks: string | undefined,
): Omit<RouteReport, 'level' | 'state' | 'recent'> {
  return {
    name: route.name,
    match: route.match,
    upstream: `${route.upstream.protocol}://${route.upstream.authority}${route.upstream.basePath}`,
    protocol: route.protocol,
    upstreamSpeaks: speaks,
    credential: route.credential,
    inject: route.inject,
    egressProxy: route.egressProxy && formatAddress(route.egressProxy),
    requests: totalsOf(counted),
  };
}

function totalsOf(counted: RouteStats | undefined): RequestTotals {
  return {
    total: counted?.total ?? 0,
    inFlight: counted?.inFlight ?? 0,
    errors: counted?.errors ?? 0,
    grpc: { calls: counted?.grpc.calls ?? 0, failures: counted?.grpc.failures ?? 0 },
  };
}

/** By prefix of route names. */
const WAYS = { forward: 'forward proxy', capture: 'capture', redirect: 'redirection' } as const;

type FoundHost = Pick<ForwardingPolicy, 'credential' | 'whenTokenUnavailable'> & {
  readonly name: string;
  readonly report: Omit<HostReport, 'level' | 'state'>;
};

function hostsOf(
  { forwardProxy, capture, redirect }: Config,
  stats: ReadonlyMap<string, RouteStats>,
  history: StatusSources['history'],
): FoundHost[] {
  const describe = (
    host: string,
    prefix: keyof typeof WAYS,
    policy: ForwardingPolicy & { readonly upgradeToTls: boolean },
  ): FoundHost => {
    const name = `${prefix}:${host}`;
    const { credential, whenTokenUnavailable, upgradeToTls } = policy;
    const report = {
      host,
      credential,
      way: WAYS[prefix],
      clear: !upgradeToTls,
      requests: totalsOf(stats.get(name)),
      recent: history.recent(name),
    };
    return { name, credential, whenTokenUnavailable, report };
  };
  const listed = (forwardProxy?.allow ?? []).map((entry) => describe(entry.host, 'forward', entry));
  const captured = (capture?.hosts ?? []).map((entry) => describe(entry.host, 'capture', entry));
  const redirected = (redirect?.hosts ?? []).map((entry) => describe(entry.host, 'redirect', entry));
  // A host with several ports is counted only by its name.
  return [...new Map([...listed, ...captured, ...redirected].map((each) => [each.name, each])).values()];
}

function readForwardProxy(
  { forwardProxy, capture, redirect }: Config,
  hosts: readonly HostReport[],
  stats: ReadonlyMap<string, RouteStats>,
  { refusedHosts }: StatusSources,
): ForwardProxyReport | undefined {
  const ways: ForwardProxyReport['ways'] = [
    ...(forwardProxy === undefined
      ? []
      : [{ way: WAYS.forward, otherHosts: forwardProxy.otherHosts } as const]),
    ...(capture === undefined ? [] : [{ way: WAYS.capture, otherHosts: 'deny' } as const]),
    ...(redirect === undefined ? [] : [{ way: WAYS.redirect, otherHosts: 'pass' } as const]),
  ];
  if (ways.length === 0) return undefined;
  return {
    ways,
    ...(forwardProxy === undefined
      ? {}
      : { connect: forwardProxy.connect, otherHosts: forwardProxy.otherHosts }),
    hosts,
    refusals: stats.get(NO_ROUTE)?.errorsByCode.get('destination_not_allowed') ?? 0,
    refusedHosts: refusedHosts().map(({ host, times, lastAtMs }) => ({
      host,
      times,
      lastAt: toIso(lastAtMs),
    })),
  };
}

function isoTime(atMs: number | undefined): string | undefined {
  return atMs === undefined ? undefined : toIso(atMs);
}

function toIso(atMs: number): string {
  return new Date(atMs).toISOString();
}
