import type { Problem } from '../platform/problems.ts';
import type { ForwardingPolicy, RouteTimeouts } from './config.ts';
import { DEFAULT_NAME } from './entries.ts';
import type { AllowedDestinationEntry, CapturedHostEntry, RouteEntry } from './file-schema.ts';
import { resolveEgressProxy } from './resolve-egress-proxy.ts';
import { resolveInjections } from './resolve-injections.ts';
import { resolveTls } from './resolve-tls.ts';

export const DEFAULT_TIMEOUTS: RouteTimeouts = { connectMs: 5000, responseMs: 60_000, idleMs: 300_000 };

/** The settings that a route, a destination of the forward proxy and a captured host share. */
export function resolvePolicy(
  key: string,
  entry: RouteEntry | AllowedDestinationEntry | CapturedHostEntry,
  problems: Problem[],
): ForwardingPolicy {
  const egressProxy = resolveEgressProxy(`${key}.egressProxy`, entry.egressProxy, problems);
  const inject = resolveInjections(`${key}.inject`, entry.inject, problems);
  return {
    credential: entry.credential ?? DEFAULT_NAME,
    ...(inject === undefined ? {} : { inject }),
    existingAuthorization: entry.existingAuthorization ?? 'replace',
    whenTokenUnavailable: entry.whenTokenUnavailable ?? 'fail',
    retryOn401: entry.retryOn401 ?? true,
    timeouts: {
      connectMs: entry.timeouts?.connect ?? DEFAULT_TIMEOUTS.connectMs,
      responseMs: entry.timeouts?.response ?? DEFAULT_TIMEOUTS.responseMs,
      idleMs: entry.timeouts?.idle ?? DEFAULT_TIMEOUTS.idleMs,
    },
    tls: resolveTls(`${key}.tls`, entry.tls, problems),
    ...(egressProxy === undefined ? {} : { egressProxy }),
    protocol: entry.protocol ?? 'auto',
  };
}
