import type { AllowedDestination, ForwardProxyConfig } from './config.ts';
import type { Keyed } from './entries.ts';
import type { AllowedDestinationEntry, FileConfig } from './file-schema.ts';
import type { Problem } from './problems.ts';
import { DEFAULT_TIMEOUTS, resolvePolicy } from './resolve-policy.ts';
import { isLoopbackHost } from './values.ts';

/** The forward proxy's settings, and its destinations with the keys that name them in messages. */
export interface ResolvedForwardProxy {
  readonly config: ForwardProxyConfig;
  readonly destinations: readonly Keyed<AllowedDestination>[];
}

export function resolveForwardProxy(
  entry: FileConfig['forwardProxy'],
  problems: Problem[],
): ResolvedForwardProxy | undefined {
  if (entry === undefined) return undefined;
  const destinations = entry.allow.map((destination, index): Keyed<AllowedDestination> => {
    const key = `forwardProxy.allow[${index}]`;
    return { key, entry: resolveDestination(key, destination, problems) };
  });
  checkReachable(destinations, problems);
  return {
    config: {
      allow: destinations.map((destination) => destination.entry),
      otherHosts: entry.otherHosts ?? 'deny',
      connect: entry.connect ?? 'deny',
      timeouts: DEFAULT_TIMEOUTS,
    },
    destinations,
  };
}

function resolveDestination(
  key: string,
  entry: AllowedDestinationEntry,
  problems: Problem[],
): AllowedDestination {
  return {
    host: entry.host.toLowerCase(),
    ...(entry.port === undefined ? {} : { port: entry.port }),
    upgradeToTls: resolveUpgrade(key, entry, problems),
    ...resolvePolicy(key, entry, problems),
  };
}

/** A token leaves this machine over TLS unless it is said that it need not; `upgradeToTls: false` says so as well. */
function resolveUpgrade(key: string, entry: AllowedDestinationEntry, problems: Problem[]): boolean {
  const { host, allowClearText, upgradeToTls } = entry;
  if (allowClearText !== undefined && allowClearText === upgradeToTls) {
    problems.push({
      key: `${key}.upgradeToTls`,
      value: String(upgradeToTls),
      expected: 'the opposite of allowClearText, or only one of them',
    });
  }
  return (
    upgradeToTls ?? (allowClearText === undefined ? !isLoopbackHost(host.toLowerCase()) : !allowClearText)
  );
}

function checkReachable(destinations: readonly Keyed<AllowedDestination>[], problems: Problem[]): void {
  destinations.forEach(({ key, entry }, index) => {
    const shadow = destinations.slice(0, index).find((earlier) => covers(earlier.entry, entry));
    if (shadow === undefined) return;
    problems.push({
      key: `${key}.host`,
      value: entry.host,
      expected: `a host that ${shadow.key} (${shadow.entry.host}) does not take before it; the more specific one comes first`,
    });
  });
}

/** Whether every request that matches `later` also matches `earlier`. */
function covers(earlier: AllowedDestination, later: AllowedDestination): boolean {
  if (earlier.port !== later.port) return false;
  if (earlier.host === later.host) return true;
  return earlier.host.startsWith('*.') && later.host.endsWith(earlier.host.slice(1));
}
