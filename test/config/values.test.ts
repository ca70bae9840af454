import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formats } from '../../src/config/values.ts';
import { formatAddress, isLoopbackHost, reachableAddress } from '../../src/platform/net/address.ts';

describe('duration', () => {
  it.each([
    ['500ms', 500],
    ['0s', 0],
    ['1.5s', 1500],
    ['5m', 300_000],
    ['1h', 3_600_000],
    ['7d', 604_800_000],
  ])('%s', (text, ms) => expect(formats.duration.parse(text)).toBe(ms));
  it.each(['5', '', '-5s', '5 s', '5S', 's', '1e3s', '1h30m', '٣s'])('refuses %j', (text) =>
    expect(formats.duration.parse(text)).toBeUndefined(),
  );
});

it('a recovery is neither a hurry without end nor an outage of its own', () => {
  expect(formats.recoveryTime.parse('1s')).toBe(1000);
  expect(formats.recoveryTime.parse('10m')).toBe(600_000);
  for (const text of ['999ms', '0s', '601s', '30']) expect(formats.recoveryTime.parse(text)).toBeUndefined();
});

describe('size', () => {
  it.each([
    ['65536', 65_536],
    ['64Ki', 65_536],
    ['10Mi', 10_485_760],
    ['1Gi', 1_073_741_824],
  ])('%s', (text, bytes) => expect(formats.size.parse(text)).toBe(bytes));
  it.each(['64k', '64KB', '-1', '1.5Ki', ''])('refuses %j', (text) =>
    expect(formats.size.parse(text)).toBeUndefined(),
  );
});

describe('listen address', () => {
  it.each([
    ['127.0.0.1:15080', { host: '127.0.0.1', port: 15_080 }],
    ['[::1]:0', { host: '::1', port: 0 }],
    ['localhost:80', { host: 'localhost', port: 80 }],
  ])('%s', (text, address) => {
    expect(formats.listenAddress.parse(text)).toEqual(address);
    expect(formatAddress(address)).toBe(text);
  });
  it.each(['127.0.0.1', ':80', '15080', '::1:80', 'a:65536', 'a:-1', 'a:b', 'http://a:80'])(
    'refuses %j',
    (text) => expect(formats.listenAddress.parse(text)).toBeUndefined(),
  );
});

describe('server URL', () => {
  it.each([
    'ftp://x',
    'x',
    '',
    'https://user:secret@x',
    'https://user@x',
    'https://x?a=b',
    'https://x#f',
    'https://x y',
    'https://',
    'javascript:alert(1)',
  ])('refuses %j', (text) => expect(formats.serverUrl.parse(text)).toBeUndefined());
});

describe('upstream', () => {
  it.each([
    [
      'https://api.example.com/v2/',
      {
        protocol: 'https',
        host: 'api.example.com',
        port: 443,
        authority: 'api.example.com',
        basePath: '/v2',
      },
    ],
    [
      'http://10.0.0.1:8080',
      { protocol: 'http', host: '10.0.0.1', port: 8080, authority: '10.0.0.1:8080', basePath: '' },
    ],
    ['http://[::1]:80/', { protocol: 'http', host: '::1', port: 80, authority: '[::1]', basePath: '' }],
  ])('%s', (text, expected) => expect(formats.upstream.parse(text)).toEqual(expected));
});

it.each([
  ['0.0.0.0', '127.0.0.1'],
  ['::', '127.0.0.1'],
  ['10.0.0.1', '10.0.0.1'],
])('a listener on %s is reached at %s', (host, reached) => {
  expect(reachableAddress({ host, port: 80 })).toEqual({ host: reached, port: 80 });
});

it('knows which hosts are this machine', () => {
  for (const host of ['localhost', 'a.localhost', '127.0.0.1', '127.9.9.9', '::1', '[::1]']) {
    expect(isLoopbackHost(host)).toBe(true);
  }
  for (const host of ['127.0.0.1.example.com', 'localhost.example.com', '10.0.0.1', '128.0.0.1', '::2']) {
    expect(isLoopbackHost(host)).toBe(false);
  }
});

it('no format ever throws', () => {
  // Any code point. The library's own such unit takes a second to make.
  const unit = fc.integer({ min: 0, max: 0x10ffff }).map((point) => String.fromCodePoint(point));
  fc.assert(
    fc.property(fc.string({ unit }), (text) => {
      for (const format of [
        formats.duration,
        formats.size,
        formats.listenAddress,
        formats.serverUrl,
        formats.upstream,
      ])
        format.parse(text);
    }),
  );
});
