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
  /** Requests by route name since the start. */
  requests(): ReadonlyMap<string, RouteTotals>;
  /** What the upstream of each route speaks, by the route's name; undefined while that is not known. */
  spoken(): ReadonlyMap<string, 'http1' | 'h2' | undefined>;
  draining(): boolean;
  readonly startedAtMs: number;
  nowMs(): number;
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
    credentials: sources.tokens.map((token, index) =>
      describeToken(token.snapshot(), sources.config.credentials[index], nowMs),
    ),
    routes: sources.config.routes.map((route) =>
      describeRoute(route, requests.get(route.name), spoken.get(route.name)),
    ),
  };
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
