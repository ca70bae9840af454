/** Hosts of forward proxy, capture and redirection. */

import { formatAddress, isLoopbackHost, isName } from '../platform/net/address.ts';
import type { Problem } from '../platform/problems.ts';
import type {
  AllowedDestination,
  CaptureConfig,
  CapturedHost,
  Config,
  ForwardProxyConfig,
  RedirectConfig,
} from './config.ts';
import { isDoubtful, type Keyed } from './entries.ts';
import type { AllowedDestinationEntry, CapturedHostEntry, FileConfig } from './file-schema.ts';
import { PROXY_SETTINGS, type ProxyValues } from './proxy-settings.ts';
import { DEFAULT_TIMEOUTS, resolvePolicy, SEEN_BY_PROXY } from './resolve-forwarding.ts';
import { readValue } from './settings.ts';
import { type AddressedHost, formats } from './values.ts';

/** Hosts have the keys that name them in messages. */
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

function resolveDestination(
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

/** HTTP/2 has a name for each: over TLS, and in clear. */
function checkDestinationProtocol(
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

/** TLS is required unless the configuration permits otherwise, as `upgradeToTls: false` does. */
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

function checkReachable(destinations: readonly Keyed<AllowedDestination>[], problems: Problem[]): void {
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

/** All of `later`'s requests match `earlier`. */
function covers(earlier: AllowedDestination, later: AllowedDestination): boolean {
  if (earlier.port !== later.port) return false;
  if (earlier.host === later.host) return true;
  return earlier.host.startsWith('*.') && later.host.endsWith(earlier.host.slice(1));
}

/** For a host that names no ports. */
const USUAL_PORTS = { ports: [443], clearPorts: [80] };

/** Hosts have the keys that name them in messages. */
interface ResolvedCapture {
  readonly config: CaptureConfig;
  readonly hosts: readonly Keyed<CapturedHost>[];
}

/** Hosts are those of the file, or of `capture-hosts`. */
export function resolveCapture(
  entry: FileConfig['capture'],
  given: ProxyValues,
  problems: Problem[],
): ResolvedCapture | undefined {
  const flag = given['capture-hosts'];
  const named = readValue(flag, formats.addressedHosts, problems);
  if (flag !== undefined && entry !== undefined) {
    const expected = 'nothing beside capture of the configuration file, which lists the hosts itself';
    problems.push({ key: flag.key, value: flag.text, expected });
  }
  const entries: readonly Keyed<CapturedHostEntry>[] =
    entry === undefined
      ? withPorts(named ?? []).map((host) => ({ key: flag?.key ?? '', entry: host }))
      : entry.hosts.map((host, index) => ({ key: `capture.hosts[${index}]`, entry: host }));
  if (entries.length === 0) return undefined;
  const hosts = entries.map((host) => ({ key: host.key, entry: resolveCapturedHost(host, problems) }));
  checkDistinct(hosts, problems);
  return { config: { hosts: hosts.map((host) => host.entry) }, hosts };
}

function namesOverTls({ hosts }: CaptureConfig): readonly string[] {
  return hosts.filter(({ ports }) => ports.length > 0).map(({ host }) => host);
}

/** Port 80 in clear, others over TLS; both usual ports by default. */
function withPorts(named: readonly AddressedHost[]): readonly CapturedHostEntry[] {
  const keys = [...new Set(named.map(({ host, address }) => `${host}=${address}`))];
  return keys.map((key) => {
    const same = named.filter(({ host, address }) => `${host}=${address}` === key);
    const [{ host, address }] = same as [AddressedHost];
    const all = same.flatMap(({ port }) => (port === undefined ? [443, 80] : [port]));
    return {
      host,
      address,
      ports: all.filter((port) => port !== 80),
      clearPorts: all.filter((port) => port === 80),
    };
  });
}

function resolveCapturedHost({ key, entry }: Keyed<CapturedHostEntry>, problems: Problem[]): CapturedHost {
  const named = entry.ports !== undefined || entry.clearPorts !== undefined;
  const { ports = [], clearPorts = [] } = named ? entry : USUAL_PORTS;
  const shared = ports.find((port) => clearPorts.includes(port));
  if (ports.length + clearPorts.length === 0) {
    problems.push({ key: `${key}.ports`, expected: 'a port, here or in clearPorts' });
  } else if (shared !== undefined) {
    const expected = 'a port that is not in ports, at which TLS is expected';
    problems.push({ key: `${key}.clearPorts`, value: String(shared), expected });
  }
  const upgradeToTls = entry.allowClearText !== true;
  if (entry.egressProxy !== undefined && !upgradeToTls && clearPorts.length > 0) {
    const expected = 'a host without allowClearText beside it: the proxy would see the token';
    problems.push({ key: `${key}.egressProxy`, expected, ...SEEN_BY_PROXY });
  }
  checkDestinationProtocol(key, entry, upgradeToTls, problems);
  return {
    host: entry.host,
    address: entry.address,
    ports: [...new Set(ports)],
    clearPorts: [...new Set(clearPorts)],
    upgradeToTls,
    ...resolvePolicy(key, entry, problems),
  };
}

function checkDistinct(hosts: readonly Keyed<CapturedHost>[], problems: Problem[]): void {
  hosts.forEach(({ key, entry }, index) => {
    const before = hosts.slice(0, index).map((other) => other.entry);
    if (before.some(({ host }) => host === entry.host)) {
      problems.push({ key: `${key}.host`, value: entry.host, expected: 'a host that no other entry has' });
    }
    const neighbours = before.filter(({ address }) => address === entry.address);
    const taken = portsOf(entry).find((port) => neighbours.some((other) => portsOf(other).includes(port)));
    if (taken === undefined) return;
    const value = formatAddress({ host: entry.address, port: taken });
    const expected = 'an address and port that no other entry has, since they tell the host';
    problems.push({ key: `${key}.address`, value, expected });
  });
}

function portsOf({ ports, clearPorts }: CapturedHost): readonly number[] {
  return [...ports, ...clearPorts];
}

/** Hosts have the keys that name them in messages. */
interface ResolvedRedirect {
  readonly config: RedirectConfig;
  readonly hosts: readonly Keyed<AllowedDestination>[];
}

/** Hosts are those of the file, or of `redirect-hosts`. */
export function resolveRedirect(
  entry: FileConfig['redirect'],
  given: ProxyValues,
  problems: Problem[],
): ResolvedRedirect | undefined {
  const flag = given['redirect-hosts'];
  const named = readValue(flag, formats.namedHosts, problems);
  const port = readValue(given['redirect-port'], formats.portNumber, problems);
  if (flag !== undefined && entry !== undefined) {
    const expected = 'nothing beside redirect of the configuration file, which lists the hosts itself';
    problems.push({ key: flag.key, value: flag.text, expected, code: 'conflicting_settings' });
  }
  if (flag === undefined && entry === undefined) {
    const unused = given['redirect-port'];
    if (unused !== undefined) {
      const expected = 'hosts beside it, in redirect or --redirect-hosts';
      problems.push({ key: unused.key, value: unused.text, expected, code: 'setting_without_use' });
    }
    return undefined;
  }
  const entries: readonly Keyed<AllowedDestinationEntry>[] =
    entry === undefined
      ? (named ?? []).map((host) => ({ key: flag?.key ?? '', entry: { ...host } }))
      : entry.hosts.map((host, index) => ({ key: `redirect.hosts[${index}]`, entry: host }));
  const hosts = entries.map((host) => ({ key: host.key, entry: resolveRedirectedHost(host, problems) }));
  checkReachable(hosts, problems);
  return {
    config: {
      port: port ?? entry?.port ?? Number(PROXY_SETTINGS['redirect-port'].default),
      hosts: hosts.map((host) => host.entry),
      timeouts: DEFAULT_TIMEOUTS,
    },
    hosts,
  };
}

function resolveRedirectedHost(
  { key, entry }: Keyed<AllowedDestinationEntry>,
  problems: Problem[],
): AllowedDestination {
  if (!isDoubtful(problems, key, 'host') && !isName(entry.host)) {
    const expected = 'a name: a connection is known by the name that its app asks for';
    problems.push({ key: `${key}.host`, value: entry.host, expected });
  }
  return resolveDestination(key, entry, 'intercept', problems);
}

/** `hosts` are intercepted, and all else passes. */
export function withNamedHosts(file: FileConfig, given: ProxyValues, problems: Problem[]): FileConfig {
  const hosts = readValue(given.hosts, formats.namedHosts, problems);
  if (given.hosts === undefined) return file;
  if (file.forwardProxy !== undefined) {
    problems.push({
      key: given.hosts.key,
      value: given.hosts.text,
      expected: 'nothing beside forwardProxy of the configuration file, which lists the hosts itself',
      code: 'conflicting_settings',
    });
    return file;
  }
  // They were not understood: say nothing more.
  const allow = (hosts ?? [{ host: 'not-understood.invalid' }]).map((host) => ({ ...host }));
  return { ...file, forwardProxy: { allow, connect: 'intercept', otherHosts: 'pass' } };
}

type Interceptors = Partial<Pick<Config, 'forwardProxy' | 'capture' | 'redirect'>>;

/** Undefined if no TLS is intercepted. */
export function resolveInterception(
  entry: FileConfig['interception'],
  interceptors: Interceptors,
  given: ProxyValues,
  problems: Problem[],
): Config['interception'] {
  const directory = given['trust-dir'];
  const intercepts = interceptors.forwardProxy?.connect === 'intercept';
  if (!intercepts && interceptors.capture === undefined && interceptors.redirect === undefined) {
    // A quick way to switch interception off.
    if (interceptors.forwardProxy?.connect === 'tunnel') return undefined;
    const expected = 'forwardProxy.connect: intercept beside it, or captured or redirected hosts';
    if (entry !== undefined) problems.push({ key: 'interception', expected, code: 'setting_without_use' });
    if (directory !== undefined)
      problems.push({ key: directory.key, value: directory.text, expected, code: 'setting_without_use' });
    return undefined;
  }
  const names = interceptedNames(interceptors);
  if (intercepts && names.length === 0) {
    problems.push({
      key: 'forwardProxy.connect',
      value: 'intercept',
      expected: 'a host with a name in forwardProxy.allow: for addresses there are no certificates',
    });
  }
  if (directory !== undefined && !directory.text.startsWith('/')) {
    problems.push({ key: directory.key, value: directory.text, expected: 'an absolute path' });
  }
  // Hosts captured only in clear need no trust.
  if (names.length === 0) return undefined;
  return { directory: directory?.text ?? entry?.directory ?? PROXY_SETTINGS['trust-dir'].default };
}

/** Names, or `*.suffix`. */
export function interceptedNames({ forwardProxy, capture, redirect }: Interceptors): readonly string[] {
  const listed = forwardProxy?.connect === 'intercept' ? forwardProxy.allow.map(({ host }) => host) : [];
  const captured = capture === undefined ? [] : namesOverTls(capture);
  const redirected = redirect?.hosts.map(({ host }) => host) ?? [];
  return [...new Set([...listed, ...captured, ...redirected])].filter(isName);
}
