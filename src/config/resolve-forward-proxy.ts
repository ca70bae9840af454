import { isLoopbackHost } from '../platform/net/address.ts';
import type { Problem } from '../platform/problems.ts';
import type { AllowedDestination, ForwardProxyConfig } from './config.ts';
import type { Keyed } from './entries.ts';
import type { AllowedDestinationEntry, FileConfig } from './file-schema.ts';
import { isDoubtful } from './follow-ups.ts';
import { SEEN_BY_PROXY } from './resolve-egress-proxy.ts';
import { DEFAULT_TIMEOUTS, resolvePolicy } from './resolve-policy.ts';

/** The forward proxy's settings, and its destinations with the keys that name them in messages. */
interface ResolvedForwardProxy {
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
    return { key, entry: resolveDestination(key, destination, entry.connect, problems) };
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

export function resolveDestination(
  key: string,
  entry: AllowedDestinationEntry,
  connect: NonNullable<FileConfig['forwardProxy']>['connect'],
  problems: Problem[],
): AllowedDestination {
  const upgradeToTls = resolveUpgrade(key, entry, problems);
  if (entry.egressProxy !== undefined && (!upgradeToTls || connect === 'tunnel')) {
    const expected = upgradeToTls
      ? 'nothing with forwardProxy.connect: tunnel, which leaves directly'
      : 'a host without allowClearText beside it: the proxy would see the token';
    problems.push({
      key: `${key}.egressProxy`,
      expected,
      ...(upgradeToTls ? { code: 'conflicting_settings' } : SEEN_BY_PROXY),
    });
  }
  checkDestinationProtocol(key, entry, upgradeToTls, problems);
  return {
    host: entry.host.toLowerCase(),
    ...(entry.port === undefined ? {} : { port: entry.port }),
    upgradeToTls,
    ...resolvePolicy(key, entry, problems),
  };
}

/** An `http://` request leaves over TLS or in clear, and HTTP/2 has a name for each. */
export function checkDestinationProtocol(
  key: string,
  { protocol }: Pick<AllowedDestinationEntry, 'protocol'>,
  upgradeToTls: boolean,
  problems: Problem[],
): void {
  const wrong = upgradeToTls ? 'h2c' : 'h2';
  if (protocol !== wrong) return;
  problems.push({
    key: `${key}.protocol`,
    value: protocol,
    expected:
      wrong === 'h2c'
        ? 'auto, http1 or h2, as requests to this host leave over TLS: h2c is HTTP/2 without TLS'
        : 'auto, http1 or h2c, as requests to this host leave in clear text: h2 is HTTP/2 over TLS',
    code: 'protocol_mismatch',
  });
}

/** A token leaves this machine over TLS unless the configuration permits otherwise, which `upgradeToTls: false` does too. */
function resolveUpgrade(key: string, entry: AllowedDestinationEntry, problems: Problem[]): boolean {
  const { host, allowClearText, upgradeToTls } = entry;
  if (allowClearText !== undefined && allowClearText === upgradeToTls) {
    problems.push({
      key: `${key}.upgradeToTls`,
      value: String(upgradeToTls),
      expected: 'the opposite of allowClearText, or only one of them',
      code: 'conflicting_settings',
    });
  }
  return (
    upgradeToTls ?? (allowClearText === undefined ? !isLoopbackHost(host.toLowerCase()) : !allowClearText)
  );
}

export function checkReachable(
  destinations: readonly Keyed<AllowedDestination>[],
  problems: Problem[],
): void {
  const understood = destinations.filter(
    ({ key }) => !isDoubtful(problems, key, 'host') && !isDoubtful(problems, key, 'port'),
  );
  understood.forEach(({ key, entry }, index) => {
    const shadow = understood.slice(0, index).find((earlier) => covers(earlier.entry, entry));
    if (shadow === undefined) return;
    problems.push({
      key: `${key}.host`,
      value: entry.host,
      expected: `a host that ${shadow.key} (${shadow.entry.host}) does not take before it; the more specific one comes first`,
      code: 'unreachable_route',
    });
  });
}

/** Whether every request that matches `later` also matches `earlier`. */
function covers(earlier: AllowedDestination, later: AllowedDestination): boolean {
  if (earlier.port !== later.port) return false;
  if (earlier.host === later.host) return true;
  return earlier.host.startsWith('*.') && later.host.endsWith(earlier.host.slice(1));
}
