import { describe, expect, it } from 'vitest';
import { BROKER_SETTINGS, readBrokerConfig } from '../../src/broker/settings.ts';
import { readSettings } from '../../src/config/settings.ts';
import type { Problem } from '../../src/platform/problems.ts';

function read(flags: Readonly<Record<string, string>>) {
  const args = Object.entries({ 'tls-cert-file': '/tls/tls.crt', 'tls-key-file': '/tls/tls.key', ...flags });
  const { given } = readSettings(
    BROKER_SETTINGS,
    args.flatMap(([name, value]) => [`--${name}`, value]),
    {},
  );
  const problems: Problem[] = [];
  const { cache } = readBrokerConfig(given, problems);
  return { cache, problems };
}

const KEYS = { 'cache-key-dir': '/key' };

it('is off unless a URL is given', () => {
  expect(read({})).toEqual({ cache: undefined, problems: [] });
});

it('has short defaults', () => {
  expect(read({ 'cache-url': 'rediss://Valkey.tokens.svc', ...KEYS })).toEqual({
    cache: {
      address: { host: 'valkey.tokens.svc', port: 6379, tls: true },
      keyDirectory: '/key',
      timeoutMs: 100,
    },
    problems: [],
  });
});

it.each([
  ['rediss://10.0.0.7:6380', { host: '10.0.0.7', port: 6380, tls: true }],
  ['rediss://[fd00::1]:6380', { host: 'fd00::1', port: 6380, tls: true }],
  ['redis://127.0.0.1', { host: '127.0.0.1', port: 6379, tls: false }],
  ['redis://[::1]:1', { host: '::1', port: 1, tls: false }],
  ['redis://localhost', { host: 'localhost', port: 6379, tls: false }],
])('%s is an address', (url, address) => {
  expect(read({ 'cache-url': url, ...KEYS })).toMatchObject({ cache: { address }, problems: [] });
});

it.each([
  ['clear text to another machine', 'redis://valkey.tokens.svc:6379'],
  ['a user and a password', 'rediss://user:pass@valkey:6379'],
  ['a path', 'rediss://valkey:6379/0'],
  ['a query', 'rediss://valkey:6379?ssl=false'],
  ['another scheme', 'https://valkey:6379'],
  ['no host', 'rediss://'],
  ['a host that is none', 'rediss://val%20key'],
  ['a port that is none', 'rediss://valkey:0'],
  ['no URL', 'valkey:6379'],
])('refuses %s', (_, url) => {
  const { cache, problems } = read({ 'cache-url': url, ...KEYS });
  expect(cache).toBeUndefined();
  expect(problems).toMatchObject([{ key: '--cache-url', value: url }]);
});

describe('refuses', () => {
  it('a cache without a key', () => {
    const { cache, problems } = read({ 'cache-url': 'rediss://valkey' });
    expect(cache).toBeUndefined();
    expect(problems).toMatchObject([{ key: '--cache-key-dir' }]);
  });

  it.each(['cache-key-dir', 'cache-auth-dir', 'cache-ca-file', 'cache-timeout'])(
    '%s without a cache',
    (flag) => {
      const { problems } = read({ [flag]: flag === 'cache-timeout' ? '50ms' : '/somewhere' });
      expect(problems).toEqual([{ key: `--${flag}`, expected: '--cache-url beside it' }]);
    },
  );

  it('CAs without TLS', () => {
    const { problems } = read({ 'cache-url': 'redis://127.0.0.1', ...KEYS, 'cache-ca-file': '/ca.crt' });
    expect(problems).toMatchObject([{ key: '--cache-ca-file' }]);
  });

  it.each(['9ms', '2001ms', '1', '0s'])('a timeout of %s', (text) => {
    const { problems } = read({ 'cache-url': 'rediss://valkey', ...KEYS, 'cache-timeout': text });
    expect(problems).toMatchObject([{ key: '--cache-timeout', expected: 'a duration from 10ms to 2s' }]);
  });
});
