/** The formats of single values in flags, environment and file. */

import { isIP } from 'node:net';
import {
  isDnsName,
  isLoopbackHost,
  isName,
  type ListenAddress,
  MAX_NAME_CHARACTERS,
  withoutBrackets,
} from '../platform/net/address.ts';
import type { Problem, ProblemCode } from '../platform/problems.ts';
import type { Upstream, UpstreamProtocol } from './config.ts';

export interface ValueFormat<T> {
  /** Completes the sentence "expected …". */
  readonly expected: string;
  parse(text: string): T | undefined;
}

const DURATION_UNITS_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const SIZE_UNITS_BYTES = { '': 1, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30 } as const;

/** In ms. A bare number's unit would be a guess. */
const duration: ValueFormat<number> = {
  expected: 'a duration such as 500ms, 30s, 5m, 1h or 7d',
  parse(text) {
    const [, number, unit] = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h|d)$/.exec(text) ?? [];
    if (number === undefined || unit === undefined) return undefined;
    return Number(number) * DURATION_UNITS_MS[unit as keyof typeof DURATION_UNITS_MS];
  },
};

/** Between attempts. Shorter pauses are useless load, longer ones an outage. */
const recoveryTime: ValueFormat<number> = {
  expected: 'a duration from 1s to 10m',
  parse(text) {
    const ms = duration.parse(text);
    return ms !== undefined && ms >= 1000 && ms <= 600_000 ? ms : undefined;
  },
};

/** With Kubernetes' suffixes: `64Ki`, `10Mi`. */
const size: ValueFormat<number> = {
  expected: 'a size in bytes such as 65536, 64Ki or 10Mi',
  parse(text) {
    const [, number, unit] = /^(\d{1,12})(Ki|Mi|Gi)?$/.exec(text) ?? [];
    if (number === undefined) return undefined;
    return Number(number) * SIZE_UNITS_BYTES[(unit ?? '') as keyof typeof SIZE_UNITS_BYTES];
  },
};

/** A peer may send 65 535 bytes before it learns of a smaller one (RFC 9113 §6.9.2). */
const windowSize: ValueFormat<number> = {
  expected: 'a size in bytes from 64Ki to 1Gi',
  parse(text) {
    const bytes = size.parse(text);
    return bytes !== undefined && bytes >= 64 * 1024 && bytes <= 1024 ** 3 ? bytes : undefined;
  },
};

const serverUrl: ValueFormat<URL> = {
  expected: 'an http or https URL without credentials, query or fragment',
  parse: (text) => (text.includes('?') ? undefined : tokenEndpointUrl.parse(text)),
};

/** It may have a query (RFC 6749 §3.2). */
const tokenEndpointUrl: ValueFormat<URL> = {
  expected: 'an http or https URL without credentials or fragment',
  parse(text) {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) return undefined;
    if (url.username !== '' || url.password !== '' || /[#\s]/.test(text)) return undefined;
    return url;
  },
};

/** A name is allowed as host. */
const listenAddress: ValueFormat<ListenAddress> = {
  expected: 'host:port with a port from 0 to 65535, such as 127.0.0.1:15080 or [::1]:0',
  parse(text) {
    const [, bracketed, plain, digits] = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s]+)):(\d{1,5})$/.exec(text) ?? [];
    const host = bracketed ?? plain;
    if (host === undefined || Number(digits) > 65_535) return undefined;
    return { host, port: Number(digits) };
  },
};

const portNumber: ValueFormat<number> = {
  expected: 'a port from 1 to 65535',
  parse: (text) => (/^[1-9]\d{0,4}$/.test(text) && Number(text) <= 65_535 ? Number(text) : undefined),
};

/** Lower-case in the result. */
const hostNames: ValueFormat<readonly string[]> = {
  expected: 'host names without ports, by commas',
  parse(text) {
    const names = text.split(',').map((name) => name.trim().toLowerCase());
    return names.every((name) => /^[a-z0-9._-]+$/.test(name)) ? names : undefined;
  },
};

/** `host` or `host:port`. */
export interface NamedHost {
  /** Lower-case, or `*.suffix`. */
  readonly host: string;
  readonly port?: number;
}

/** More would make a certificate too large for clients. */
export const MAX_NAMED_HOSTS = 100;

/** More specific ones first, each once. */
const namedHosts: ValueFormat<readonly NamedHost[]> = {
  expected: `1 to ${MAX_NAMED_HOSTS} host names by commas, each with an optional port, such as api.example.com, *.example.com:8443`,
  parse(text) {
    const hosts = text.split(',').map((entry) => parseNamedHost(entry.trim().toLowerCase()));
    if (hosts.length > MAX_NAMED_HOSTS || hosts.includes(undefined)) return undefined;
    const named = hosts as readonly NamedHost[];
    const isSame = (a: NamedHost) => (b: NamedHost) => a.host === b.host && a.port === b.port;
    return named
      .filter((host, index) => named.findIndex(isSame(host)) === index)
      .sort(
        (a, b) =>
          Number(a.host.startsWith('*')) - Number(b.host.startsWith('*')) || b.host.length - a.host.length,
      );
  },
};

/** Lower-case in the result. */
const exactName: ValueFormat<string> = {
  expected:
    'an exact host name such as api.example.com: a hosts file has no wildcards, for which there is forwardProxy',
  parse(text) {
    const named = parseNamedHost(text.toLowerCase());
    return named?.port === undefined && named?.host.startsWith('*') === false ? named.host : undefined;
  },
};

const loopbackAddress: ValueFormat<string> = {
  expected: 'an address of loopback such as 127.0.0.2, or ::1',
  parse: (text) => (isIP(text) !== 0 && isLoopbackHost(text) ? text : undefined),
};

export interface AddressedHost extends NamedHost {
  readonly address: string;
}

const addressedHosts: ValueFormat<readonly AddressedHost[]> = {
  expected: `1 to ${MAX_NAMED_HOSTS} exact host names by commas, each with an optional port and its address of loopback, such as api.example.com=127.0.0.2, pay.example.com:8443=127.0.0.3`,
  parse(text) {
    const hosts = text.split(',').map((entry): AddressedHost | undefined => {
      const [authority = '', address = '', ...more] = entry.trim().split('=');
      const named = parseNamedHost(authority.toLowerCase());
      const isUsable = named !== undefined && exactName.parse(named.host) !== undefined && more.length === 0;
      return isUsable && loopbackAddress.parse(address) !== undefined ? { ...named, address } : undefined;
    });
    const usable = hosts.filter((host) => host !== undefined);
    // A host may have an entry for each port.
    const isFew = new Set(usable.map(({ host }) => host)).size <= MAX_NAMED_HOSTS;
    return usable.length === hosts.length && isFew && hosts.length <= 2 * MAX_NAMED_HOSTS
      ? usable
      : undefined;
  },
};

/** URLs take them for addresses (WHATWG URL). */
const ENDS_IN_NUMBER = /(?:^|\.)(?:\d+|0x[\da-f]*)$/i;

function parseNamedHost(text: string): NamedHost | undefined {
  const [, host, digits] = /^([^:]+)(?::(\d{1,5}))?$/.exec(text) ?? [];
  if (host === undefined || !isDnsName(host.replace(/^\*\./, '')) || !isName(host)) return undefined;
  if (host.length > MAX_NAME_CHARACTERS || ENDS_IN_NUMBER.test(host)) return undefined;
  if (digits === undefined) return { host };
  const port = Number(digits);
  return port >= 1 && port <= 65_535 ? { host, port } : undefined;
}

const upstream: ValueFormat<Upstream> = {
  expected: serverUrl.expected,
  parse(text) {
    const url = serverUrl.parse(text);
    if (url === undefined) return undefined;
    return { ...serverOf(url), authority: url.host, basePath: url.pathname.replace(/\/+$/, '') };
  },
};

export const DEFAULT_PORTS = { http: 80, https: 443 } as const;

export function serverOf(url: URL): Pick<Upstream, 'protocol' | 'host' | 'port'> {
  const protocol = url.protocol === 'https:' ? 'https' : 'http';
  const port = url.port === '' ? DEFAULT_PORTS[protocol] : Number(url.port);
  return { protocol, host: withoutBrackets(url.hostname), port };
}

export function oneOf<const Word extends string>(words: readonly Word[]): ValueFormat<Word> {
  return {
    expected: words.length === 1 ? `${words[0]}` : `one of ${words.join(', ')}`,
    parse: (text) => words.find((word) => word === text),
  };
}

export const UPSTREAM_PROTOCOLS = [
  'auto',
  'http1',
  'h2',
  'h2c',
] as const satisfies readonly UpstreamProtocol[];

export const PROOFS_OF_POSSESSION = ['none', 'dpop'] as const;

const upstreamProtocol: ValueFormat<UpstreamProtocol> = oneOf(UPSTREAM_PROTOCOLS);

export const formats = {
  duration,
  recoveryTime,
  size,
  windowSize,
  serverUrl,
  tokenEndpointUrl,
  listenAddress,
  portNumber,
  hostNames,
  namedHosts,
  exactName,
  loopbackAddress,
  addressedHosts,
  upstream,
  upstreamProtocol,
};

/**
 * `h2` is over TLS, `h2c` over TCP.
 * @param key of the word.
 */
export function protocolProblems(
  key: string,
  protocol: UpstreamProtocol | undefined,
  upstream: Pick<Upstream, 'protocol'>,
): Problem[] {
  if (protocol === 'h2c' && upstream.protocol === 'https') {
    const expected = 'auto, http1 or h2, as the upstream is an https URL: h2c is HTTP/2 without TLS';
    return [{ key, value: protocol, expected, code: 'protocol_mismatch' }];
  }
  if (protocol === 'h2' && upstream.protocol === 'http') {
    const expected = 'auto, http1 or h2c, as the upstream is an http URL: h2 is HTTP/2 over TLS';
    return [{ key, value: protocol, expected, code: 'protocol_mismatch' }];
  }
  return [];
}

export const ACCESS_LOGS = ['off', 'errors', 'all'] as const;

const CODES: readonly (readonly [ValueFormat<unknown>, ProblemCode])[] = [
  [duration, 'invalid_duration'],
  [recoveryTime, 'invalid_duration'],
  [size, 'invalid_size'],
  [windowSize, 'invalid_size'],
  [serverUrl, 'invalid_url'],
  [tokenEndpointUrl, 'invalid_url'],
  [upstream, 'invalid_url'],
  [listenAddress, 'invalid_address'],
];

const BY_EXPECTATION: ReadonlyMap<string, ProblemCode> = new Map(
  CODES.map(([{ expected }, code]) => [expected, code]),
);

/** Undefined if the format implies none. */
export function codeOfExpectation(expected: string): ProblemCode | undefined {
  return BY_EXPECTATION.get(expected) ?? (expected.startsWith('one of ') ? 'unknown_word' : undefined);
}
