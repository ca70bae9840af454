import { isIP } from 'node:net';
import { PROXY_SETTINGS } from '../config/proxy-settings.ts';
import { type GivenValues, readValue, type Settings } from '../config/settings.ts';
import { formats, oneOf, type ValueFormat } from '../config/values.ts';
import { ConfigurationError, type Problem } from '../platform/problems.ts';
import type { AddressRange, Redirection } from './netfilter/redirection-table.ts';

type PortRange = Redirection['capturedPorts'][number];

export const REDIRECT_SETTINGS = {
  remove: { description: 'Take the redirection away instead', default: 'false' },
  'redirect-port': PROXY_SETTINGS['redirect-port'],
  ports: {
    argument: 'PORTS',
    description: 'TCP ports that come to the sidecar, by commas, or ranges such as 8000-8100',
    default: '80,443',
  },
  'refused-udp-ports': {
    argument: 'PORTS',
    description: 'UDP ports that are refused, so that QUIC falls back to TCP, or none',
    default: '443',
  },
  'excluded-ports': {
    argument: 'PORTS',
    description: 'Ports of TCP and UDP that are left alone',
    default: 'none',
  },
  'excluded-ranges': {
    argument: 'RANGES',
    description: 'Addresses that are left alone, by commas, such as 10.0.0.0/8',
    default: 'none',
  },
  'exempt-user': {
    argument: 'UID',
    description: "User whose connections are left alone: the sidecar's own",
    default: '65532',
  },
} as const satisfies Settings;

const MAX_RANGES = 64;

type RedirectRequest =
  | { readonly kind: 'remove' }
  | { readonly kind: 'install'; readonly redirection: Redirection };

/** @throws {ConfigurationError} with every problem. */
export function readRedirectRequest(given: GivenValues<typeof REDIRECT_SETTINGS>): RedirectRequest {
  const problems: Problem[] = [];
  const remove = readValue(given.remove, oneOf(['true', 'false']), problems);
  const redirection: Redirection = {
    port:
      readValue(given['redirect-port'], formats.portNumber, problems) ??
      Number(PROXY_SETTINGS['redirect-port'].default),
    capturedPorts: readValue(given.ports, portRanges, problems) ?? defaultOf('ports', portRanges),
    refusedUdpPorts:
      readValue(given['refused-udp-ports'], noneOr(portRanges), problems) ??
      defaultOf('refused-udp-ports', portRanges),
    excludedPorts: readValue(given['excluded-ports'], noneOr(portRanges), problems) ?? [],
    excludedRanges: readValue(given['excluded-ranges'], noneOr(addressRanges), problems) ?? [],
    exemptUser:
      readValue(given['exempt-user'], userId, problems) ?? Number(REDIRECT_SETTINGS['exempt-user'].default),
  };
  if (problems.length > 0) throw new ConfigurationError(problems);
  return remove === 'true' ? { kind: 'remove' } : { kind: 'install', redirection };
}

function defaultOf<Value>(name: 'ports' | 'refused-udp-ports', { parse }: ValueFormat<Value>): Value {
  return parse(REDIRECT_SETTINGS[name].default) as Value;
}

const portRanges: ValueFormat<readonly PortRange[]> = {
  expected: `1 to ${MAX_RANGES} ports by commas, each from 1 to 65535 or a range of them, such as 80,443,8000-8100`,
  parse: (text) => listOf(text, portRange),
};

function portRange(text: string): PortRange | undefined {
  const [, begin, end = begin] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(text) ?? [];
  if (begin === undefined) return undefined;
  const [first, last] = [formats.portNumber.parse(begin), formats.portNumber.parse(end as string)];
  return first !== undefined && last !== undefined && first <= last ? { first, last } : undefined;
}

const addressRanges: ValueFormat<readonly AddressRange[]> = {
  expected: `1 to ${MAX_RANGES} addresses by commas, each with an optional prefix length, such as 10.0.0.0/8, fd00::/8, 169.254.169.254`,
  parse: (text) => listOf(text, addressRange),
};

function addressRange(text: string): AddressRange | undefined {
  const [, address = '', digits] = /^([0-9a-fA-F:.]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const version = isIP(address);
  if (version !== 4 && version !== 6) return undefined;
  const octets = version === 4 ? Buffer.from(address.split('.').map(Number)) : octetsOf(address);
  const bits = 8 * octets.length;
  const prefix = digits === undefined ? bits : Number(digits);
  return prefix <= bits ? { family: version, address: octets, prefix } : undefined;
}

/** Of an address in any notation (RFC 4291 §2.2). */
function octetsOf(address: string): Buffer {
  // URL normalizes an address in brackets, without an IPv4 part.
  const [front = '', back] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::');
  const groups = (text: string | undefined) => (text === undefined || text === '' ? [] : text.split(':'));
  const [before, after] = [groups(front), groups(back)];
  const zeros = new Array<string>(8 - before.length - after.length).fill('0');
  return Buffer.from([...before, ...zeros, ...after].map((group) => group.padStart(4, '0')).join(''), 'hex');
}

const userId: ValueFormat<number> = {
  expected: 'the number of a user, from 1 to 2147483647: with 0, what runs as root would not be captured',
  parse: (text) => (/^[1-9]\d{0,9}$/.test(text) && Number(text) <= 2_147_483_647 ? Number(text) : undefined),
};

function noneOr<T>({ expected, parse }: ValueFormat<readonly T[]>): ValueFormat<readonly T[]> {
  return { expected: `${expected}; or none`, parse: (text) => (text === 'none' ? [] : parse(text)) };
}

function listOf<T>(text: string, parse: (one: string) => T | undefined): readonly T[] | undefined {
  const values = text.split(',').map((one) => parse(one.trim()));
  const known = values.filter((value) => value !== undefined);
  return known.length === values.length && known.length <= MAX_RANGES ? known : undefined;
}
