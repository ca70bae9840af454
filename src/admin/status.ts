/** What `/api/status` tells: everything an operator asks of a sidecar, and nothing that could be replayed. */

import type { Config, ProviderAddress, RouteConfig } from '../config/config.ts';
import { formatAddress } from '../config/values.ts';
import type { TokenSnapshot } from '../token/token-snapshot.ts';
import { withoutQuery } from '../token/why-no-token.ts';
import { REVISION, VERSION } from '../version.ts';
import { readMemoryUse } from './memory.ts';

export interface StatusSources {
  readonly config: Config;
  /** In the order of `config.credentials`. */
  readonly tokens: readonly { snapshot(): TokenSnapshot }[];
  /** How it stands to the file that it was read from; undefined where it is of no file. */
  readonly configuration?: ConfigurationState | undefined;
  /** Requests by route name since the start. */
  requests(): ReadonlyMap<string, RouteTotals>;
  /** What the upstream of each route speaks, by the route's name; undefined while that is not known. */
  spoken(): ReadonlyMap<string, 'http1' | 'h2' | undefined>;
  draining(): boolean;
  readonly startedAtMs: number;
  nowMs(): number;
}

/** Instants are wall time in ms. */
export interface ConfigurationState {
  readonly file: string;
  readonly generation: number;
  readonly sinceMs: number;
  readonly standing:
    | { readonly state: 'current' }
    | {
        readonly state: 'waiting';
        readonly sinceMs: number;
        readonly overdue: boolean;
        missing(): readonly string[];
      }
    | {
        readonly state: 'refused';
        readonly atMs: number;
        readonly result: string;
        readonly report: string;
      };
}

export interface RouteTotals {
  readonly total: number;
  readonly inFlight: number;
  readonly errors: number;
  readonly grpc: { readonly calls: number; readonly failures: number };
}

export function readStatus(sources: StatusSources): unknown {
  const nowMs = sources.nowMs();
  const requests = sources.requests();
  const spoken = sources.spoken();
  return {
    version: VERSION,
    revision: REVISION,
    node: process.version,
    startedAt: isoTime(sources.startedAtMs),
    uptimeSeconds: Math.floor((nowMs - sources.startedAtMs) / 1000),
    draining: sources.draining(),
    memory: readMemoryUse(),
    configuration: sources.configuration && describeConfiguration(sources.configuration),
    credentials: sources.tokens.map((token, index) =>
      describeToken(token.snapshot(), sources.config.credentials[index], nowMs),
    ),
    routes: sources.config.routes.map((route) =>
      describeRoute(route, requests.get(route.name), spoken.get(route.name)),
    ),
  };
}

function describeConfiguration({ file, generation, sinceMs, standing }: ConfigurationState): unknown {
  return { file, generation, since: isoTime(sinceMs), ...describeStanding(standing) };
}

function describeStanding(standing: ConfigurationState['standing']): object {
  switch (standing.state) {
    case 'current':
      return { state: 'current' };
    case 'waiting': {
      const { sinceMs, overdue, missing } = standing;
      return { state: 'waiting', waitingSince: isoTime(sinceMs), overdue, missing: missing() };
    }
    case 'refused': {
      const { atMs, result, report } = standing;
      return { state: 'refused', refusedAt: isoTime(atMs), reason: result, errors: report };
    }
  }
}

function describeToken(token: TokenSnapshot, config: ProviderAddress | undefined, nowMs: number): unknown {
  return {
    name: token.name,
    tokenUrl: token.tokenUrl && withoutQuery(token.tokenUrl),
    issuerUrl: config?.issuerUrl && withoutQuery(config.issuerUrl),
    required: token.required,
    ready: token.ready,
    requestedAt: isoTime(token.requestedAtMs),
    expiresAt: isoTime(token.expiresAtMs),
    expiresInSeconds:
      token.expiresAtMs === undefined ? undefined : Math.round((token.expiresAtMs - nowMs) / 1000),
    nextGrantAt: isoTime(token.renewalAtMs),
    nextGrantReason: token.renewalReason,
    grantInFlight: token.grantInFlight,
    consecutiveFailures: token.consecutiveFailures,
    lastFailure: token.lastFailure && {
      at: isoTime(token.lastFailure.at.wallMs),
      result: token.lastFailure.result,
      detail: token.lastFailure.detail,
    },
    mountedCredentials: token.credentials,
    history: token.history.map(({ atMs, reason, result, durationMs }) => ({
      at: isoTime(atMs),
      reason,
      result,
      durationMs: Math.round(durationMs),
    })),
  };
}

function describeRoute(
  route: RouteConfig,
  traffic: RouteTotals | undefined,
  speaks: string | undefined,
): unknown {
  return {
    name: route.name,
    match: route.match,
    upstream: `${route.upstream.protocol}://${route.upstream.authority}${route.upstream.basePath}`,
    protocol: route.protocol,
    upstreamSpeaks: speaks,
    credential: route.credential,
    inject: route.inject,
    egressProxy: route.egressProxy && formatAddress(route.egressProxy),
    requests: {
      total: traffic?.total ?? 0,
      inFlight: traffic?.inFlight ?? 0,
      errors: traffic?.errors ?? 0,
      grpc: { calls: traffic?.grpc.calls ?? 0, failures: traffic?.grpc.failures ?? 0 },
    },
  };
}

function isoTime(atMs: number | undefined): string | undefined {
  return atMs === undefined ? undefined : new Date(atMs).toISOString();
}
