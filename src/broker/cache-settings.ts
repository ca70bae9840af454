/** Where a broker's replicas share their tokens: the broker's settings, read and checked. */

import { isIP } from 'node:net';
import { type GivenValues, readValue, type Settings } from '../config/settings.ts';
import { duration, type ValueFormat } from '../config/values.ts';
import { isDnsName, isLoopbackHost, withoutBrackets } from '../platform/net/address.ts';
import type { Problem } from '../platform/problems.ts';
import type { StoreAddress } from './cache/redis-store.ts';

export const BROKER_CACHE_SETTINGS = {
  'cache-url': {
    argument: 'URL',
    description:
      'Valkey or Redis in which replicas share their tokens, as rediss://HOST:PORT; each asks by itself without',
  },
  'cache-key-dir': {
    argument: 'PATH',
    description:
      'Mounted Secret whose file current encrypts these tokens, 32 bytes in base64; previous is for reading while current is rotated',
  },
  'cache-auth-dir': {
    argument: 'PATH',
    description:
      'Mounted Secret with password, and with username where there is one, of Valkey or Redis; no password without it',
  },
  'cache-ca-file': {
    argument: 'PATH',
    description: 'CAs in PEM of its certificate',
    default: 'the public CAs',
  },
  'cache-timeout': {
    argument: 'DURATION',
    description: 'How long an answer of it is waited for; then the replica asks the provider by itself',
    default: '100ms',
  },
} as const satisfies Settings;

type Given = GivenValues<typeof BROKER_CACHE_SETTINGS>;

export interface BrokerCacheConfig {
  readonly address: StoreAddress;
  readonly keyDirectory: string;
  readonly authDirectory?: string | undefined;
  readonly caFile?: string | undefined;
  readonly timeoutMs: number;
}

const DEFAULT_PORT = 6379;

const cacheUrl: ValueFormat<StoreAddress> = {
  expected:
    'rediss://HOST or rediss://HOST:PORT, without a user, a path or a query; redis:// of a loopback address alone',
  parse(text) {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (url === undefined || !/^rediss?:\/\/[^/?#@\s]+$/.test(text)) return undefined;
    // URL keeps the case of hosts in schemes that it does not know.
    const host = withoutBrackets(url.hostname).toLowerCase();
    const tls = url.protocol === 'rediss:';
    if (isIP(host) === 0 && !isDnsName(host)) return undefined;
    if (url.port === '0' || (!tls && !isLoopbackHost(host))) return undefined;
    return { host, port: url.port === '' ? DEFAULT_PORT : Number(url.port), tls };
  },
};

const timeout: ValueFormat<number> = {
  expected: 'a duration from 10ms to 2s',
  parse(text) {
    const ms = duration.parse(text);
    return ms !== undefined && ms >= 10 && ms <= 2000 ? ms : undefined;
  },
};

/** Undefined if there is no cache. Mistakes are added to `problems`. */
export function readBrokerCache(given: Given, problems: Problem[]): BrokerCacheConfig | undefined {
  const { 'cache-url': url, 'cache-key-dir': keys, 'cache-ca-file': caFile } = given;
  const auth = given['cache-auth-dir'];
  if (url === undefined) {
    for (const alone of [keys, auth, caFile, given['cache-timeout']]) {
      if (alone !== undefined) problems.push({ key: alone.key, expected: '--cache-url beside it' });
    }
    return undefined;
  }
  const address = readValue(url, cacheUrl, problems);
  const timeoutMs = readValue(given['cache-timeout'], timeout, problems) ?? 100;
  if (caFile !== undefined && address?.tls === false) {
    problems.push({ key: caFile.key, value: caFile.text, expected: `no CAs with ${url.key} redis://` });
  }
  if (keys === undefined) {
    problems.push({
      key: '--cache-key-dir',
      expected: `a directory with the file current beside ${url.key}: tokens lie there encrypted alone`,
    });
  }
  if (address === undefined || keys === undefined) return undefined;
  return { address, keyDirectory: keys.text, authDirectory: auth?.text, caFile: caFile?.text, timeoutMs };
}
