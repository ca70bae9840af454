/** The only list of listeners' addresses. */

import { isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';
import { EVERY_ADDRESS, formatAddress, isLoopbackHost, type ListenAddress } from '../platform/net/address.ts';
import type { Problem } from '../platform/problems.ts';
import type { CapturedHost, Config } from './config.ts';
import { isDoubtful } from './entries.ts';
import type { PROXY_SETTINGS, ProxyValues } from './proxy-settings.ts';

export interface SidecarListener {
  /** `proxy`, `capture of api.example.com`. */
  readonly what: string;
  readonly address: ListenAddress;
  /** The key in the file. */
  readonly key: string;
  /** Can set it instead. */
  readonly flag?: keyof typeof PROXY_SETTINGS;
  /** The sidecar then starts without it. */
  readonly mayLack?: true;
}

type WithListeners = Pick<Config, 'listen' | 'admin' | 'gateway' | 'tokenEndpoint' | 'capture' | 'redirect'>;

/** Port 0: the system picks one. */
export function sidecarListeners(config: WithListeners): readonly SidecarListener[] {
  const { listen, admin, gateway, tokenEndpoint, capture, redirect } = config;
  return [
    gateway === undefined
      ? { what: 'proxy', address: listen, key: 'listen', flag: 'listen' }
      : { what: 'gateway', address: gateway.listen, key: 'gateway.listen' },
    { what: 'admin', address: admin.listen, key: 'admin.listen', flag: 'admin-listen' },
    ...(tokenEndpoint === undefined
      ? []
      : [{ what: 'token endpoint', address: tokenEndpoint.listen, key: 'tokenEndpoint.listen' }]),
    ...(capture?.hosts ?? []).flatMap((host, index) =>
      captureListeners(host).map((address): SidecarListener => {
        const key = `capture.hosts[${index}].address`;
        return { what: `capture of ${host.host}`, address, key, flag: 'capture-hosts' };
      }),
    ),
    ...(redirect === undefined ? [] : redirectListeners(redirect.port)).map(
      (address): SidecarListener => ({
        what: 'redirected connections',
        address,
        key: 'redirect.port',
        flag: 'redirect-port',
        ...(address.host === '::1' ? { mayLack: true } : {}),
      }),
    ),
  ];
}

/** A gateway asks its callers who they are; the sidecar takes everyone for its app. */
export const OPEN_LISTENER = {
  fault: 'whoever reaches this address uses the token',
  remedy:
    'listen on 127.0.0.1, and let the app share the network of the sidecar (as in a pod; with Docker Compose, network_mode: "service:NAME"), or run token-sidecar gateway for callers from elsewhere',
} as const;

/** Undefined if the proxy is for this machine or pod alone. */
export function openListener({ listen, gateway }: WithListeners): ListenAddress | undefined {
  return gateway === undefined && !isLoopbackHost(listen.host) ? listen : undefined;
}

function captureListeners({
  address: host,
  ports,
  clearPorts,
}: Pick<CapturedHost, 'address' | 'ports' | 'clearPorts'>): readonly ListenAddress[] {
  return [...ports, ...clearPorts].map((port) => ({ host, port }));
}

/** Loopback, in either family. */
export function redirectListeners(port: number): readonly [ListenAddress, ListenAddress] {
  return [
    { host: '127.0.0.1', port },
    { host: '::1', port },
  ];
}

/** The machine lacks the address family. */
export const WITHOUT_FAMILY: ReadonlySet<string | undefined> = new Set(['EADDRNOTAVAIL', 'EAFNOSUPPORT']);

/** Undefined if none is the sidecar's. */
export function sidecarListenerAt(
  config: Config,
  addresses: readonly string[],
  port: number,
): SidecarListener | undefined {
  return sidecarListeners(config).find(
    ({ address }) => address.port === port && port !== 0 && addresses.some((one) => isAt(address.host, one)),
  );
}

/** The sidecar could not start otherwise. Captured hosts have been compared with each other. */
export function checkListeners(config: WithListeners, given: ProxyValues, problems: Problem[]): void {
  const named = sidecarListeners(config).map(({ key, flag, ...listener }) => ({
    ...listener,
    key: (flag && given[flag]?.key) ?? key,
    isCaptured: flag === 'capture-hosts',
  }));
  // It has its default here.
  const doubtful = new Set(
    [...new Set(named.map(({ key }) => key))].filter((key) => isDoubtful(problems, key)),
  );
  const known = named.filter(({ key }) => !doubtful.has(key));
  // Captured hosts are compared only with the few others.
  const before: (typeof known)[number][] = [];
  const fewBefore: (typeof known)[number][] = [];
  for (const one of known) {
    const { key, address, isCaptured } = one;
    const other = (isCaptured ? fewBefore : before).find((each) => isShared(each.address, address));
    before.push(one);
    if (!isCaptured) fewBefore.push(one);
    if (other === undefined) continue;
    const expected = `an address that the sidecar does not have already: ${other.key} is ${formatAddress(other.address)}`;
    problems.push({ key, value: formatAddress(address), expected, code: 'conflicting_settings' });
  }
}

/** Listening at every address takes the port. */
function isShared(a: ListenAddress, b: ListenAddress): boolean {
  if (a.port !== b.port || a.port === 0) return false;
  return takes(a.host, b.host) || takes(b.host, a.host);
}

function takes(host: string, other: string): boolean {
  if (host === EVERY_ADDRESS) return true;
  if (host === '0.0.0.0') return !isIPv6(other);
  return isAt(host, other);
}

/** It names both on every machine. */
const LOCALHOST = ['127.0.0.1', '::1'];

/** @param listening an address, a name, or every address. */
function isAt(listening: string, address: string): boolean {
  if (address === 'localhost') return LOCALHOST.some((one) => isAt(listening, one));
  if (listening === address) return true;
  if (listening === 'localhost') return LOCALHOST.includes(address);
  if (listening === '0.0.0.0') return !isIPv6(address) && isOfThisMachine(address);
  return listening === EVERY_ADDRESS && isOfThisMachine(address);
}

function isOfThisMachine(address: string): boolean {
  const own = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  return isLoopbackHost(address) || own.some((each) => each.address === address);
}
