import { formatAddress } from '../platform/net/address.ts';
import type { Problem } from '../platform/problems.ts';
import type { CaptureConfig, CapturedHost } from './config.ts';
import type { Keyed } from './entries.ts';
import type { CapturedHostEntry, FileConfig } from './file-schema.ts';
import type { ProxyValues } from './proxy-settings.ts';
import { SEEN_BY_PROXY } from './resolve-egress-proxy.ts';
import { checkDestinationProtocol } from './resolve-forward-proxy.ts';
import { resolvePolicy } from './resolve-policy.ts';
import { readValue } from './settings.ts';
import { type AddressedHost, addressedHosts } from './values.ts';

/** The ports captured for a host that names none: https and http. */
const USUAL_PORTS = { ports: [443], clearPorts: [80] };

/** The captured hosts, with the keys that name them in messages. */
interface ResolvedCapture {
  readonly config: CaptureConfig;
  readonly hosts: readonly Keyed<CapturedHost>[];
}

/** The hosts of the file, or those that `capture-hosts` names. */
export function resolveCapture(
  entry: FileConfig['capture'],
  given: ProxyValues,
  problems: Problem[],
): ResolvedCapture | undefined {
  const flag = given['capture-hosts'];
  const named = readValue(flag, addressedHosts, problems);
  if (flag !== undefined && entry !== undefined) {
    const expected = 'nothing beside capture of the configuration file, which lists the hosts itself';
    problems.push({ key: flag.key, value: flag.text, expected });
  }
  const entries: readonly Keyed<CapturedHostEntry>[] =
    entry === undefined
      ? withPorts(named ?? []).map((host) => ({ key: flag?.key ?? '', entry: host }))
      : entry.hosts.map((host, index) => ({ key: `capture.hosts[${index}]`, entry: host }));
  if (entries.length === 0) return undefined;
  const hosts = entries.map((host) => ({ key: host.key, entry: resolveHost(host, problems) }));
  checkDistinct(hosts, problems);
  return { config: { hosts: hosts.map((host) => host.entry) }, hosts };
}

/** Names for which a certificate is shown. */
export function namesOverTls({ hosts }: CaptureConfig): readonly string[] {
  return hosts.filter(({ ports }) => ports.length > 0).map(({ host }) => host);
}

/** One entry per host and address, with every port named: 80 in clear, others over TLS. Without any, both usual ports. */
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

function resolveHost({ key, entry }: Keyed<CapturedHostEntry>, problems: Problem[]): CapturedHost {
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
