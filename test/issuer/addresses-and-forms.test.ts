/** What is read of addresses, fields, forms, hashes and keys: each limit, and what lies just beyond it. */

import { describe, expect, it } from 'vitest';
import { readBasicCredentials } from '../../src/issuer/caller-verification.ts';
import { isScopeToken, tokenLifetime } from '../../src/issuer/clients.ts';
import { generateSigningKey, parsePublishedKey, parseSigningKey } from '../../src/issuer/keys.ts';
import { createLoginThrottle, networkOf } from '../../src/issuer/login-throttle.ts';
import { parseScryptHash } from '../../src/issuer/secret-hashing.ts';
import { parseForm } from '../../src/platform/form.ts';
import { ManualClock } from '../support/manual-clock.ts';

describe('the network of an address', () => {
  it.each([
    ['::ffff:192.168.100.200', '192.168.100.200'],
    ['::FFFF:10.20.30.40', '10.20.30.40'],
    ['1::ffff:192.0.2.1', '1:0:0:0::/64'],
    ['::ffff:192.0.2.1%eth0', '0:0:0:0::/64'],
    ['2001:db8:1::', '2001:db8:1:0::/64'],
    ['::', '0:0:0:0::/64'],
    ['::4:5:6:7:8', '0:0:0:4::/64'],
    ['1::4:5:6:7:8', '1:0:0:4::/64'],
    ['1:2:3:4:5:6:7::', '1:2:3:4::/64'],
    ['2001:DB8:A:B:C:D:E:F%eth0', '2001:db8:a:b::/64'],
  ])('%s is %s', (address, network) => {
    expect(networkOf(address)).toBe(network);
  });
});

it('an attempt says in whole seconds when to come again', async () => {
  const clock = new ManualClock();
  const limits = createLoginThrottle(clock);
  for (let index = 0; index < 10; index++)
    expect(limits.begin('a', 'shop')).not.toHaveProperty('retryAfterSeconds');
  await clock.advance(500);
  expect(limits.begin('a', 'shop')).toEqual({ retryAfterSeconds: 1 });
  for (let index = 0; index < 120; index++) {
    const attempt = limits.begin('b', `client ${index}`);
    if ('failed' in attempt) attempt.failed();
  }
  expect(limits.begin('b', 'another')).toEqual({ retryAfterSeconds: 1 });
});

describe('a Basic field', () => {
  const encoded = (text: string): string => Buffer.from(text).toString('base64');
  it.each([
    ['lower case', `basic ${encoded('a:b')}`],
    ['several spaces', `Basic   ${encoded('a:b')}`],
  ])('may be written with %s', (_, field) => {
    expect(readBasicCredentials(field)).toEqual([{ clientId: 'a', secret: 'b' }]);
  });

  it.each([
    ['no colon', `Basic ${encoded('ab')}`],
    ['no space', `Basic${encoded('a:b')}`],
    ['something before', `x Basic ${encoded('a:b')}`],
    ['something behind', `Basic ${encoded('a:b')} x`],
    ['three signs for padding', 'Basic YTpi==='],
    ['bytes that are no text', `Basic ${Buffer.from([0x61, 0x3a, 0xff]).toString('base64')}`],
    ['nothing', 'Basic '],
  ])('is none with %s', (_, field) => {
    expect(readBasicCredentials(field)).toEqual([]);
  });

  it('may be empty on either side of its colon', () => {
    expect(readBasicCredentials(`Basic ${encoded(':')}`)).toEqual([{ clientId: '', secret: '' }]);
  });

  it.each([
    ['a+b:c', 'a b', 'c'],
    ['a:c%2B', 'a', 'c+'],
  ])('%s has a second reading where either side differs', (pair, clientId, secret) => {
    expect(readBasicCredentials(`Basic ${encoded(pair)}`)).toContainEqual({ clientId, secret });
    expect(readBasicCredentials(`Basic ${encoded(pair)}`)).toHaveLength(2);
  });
});

describe('a form', () => {
  it.each([
    ['bytes that are no text', Buffer.from([0x61, 0x3d, 0xff]), 'the form is not valid UTF-8'],
    ['half an escape', Buffer.from('a=%2'), 'the form holds a malformed percent escape'],
    ['half an escape in a name', Buffer.from('%2=a'), 'the form holds a malformed percent escape'],
    ['a repetition', Buffer.from('a=1&b=2&a=3'), 'a parameter is given more than once'],
    ['a repetition of nothing', Buffer.from('a=&a=1'), 'a parameter is given more than once'],
  ])('with %s is refused as what it is', (_, body, description) => {
    expect(parseForm(body)).toMatchObject({ description });
  });

  it.each([
    ['a=b=c', [['a', 'b=c']]],
    ['a+b=c+d', [['a b', 'c d']]],
    ['a', []],
    ['=x', [['', 'x']]],
    ['\ufeffa=1', [['\ufeffa', '1']]],
  ])('%j is read', (text, pairs) => {
    expect(parseForm(Buffer.from(text))).toEqual(new Map(pairs as [string, string][]));
  });
});

describe('the life of a token', () => {
  it.each([
    ['1s', 1],
    ['1000ms', 1],
    ['90s', 90],
    ['30d', 2_592_000],
  ])('may be %s', (text, seconds) => {
    expect(tokenLifetime.parse(text)).toBe(seconds);
  });

  it.each(['0s', '999ms', '1500ms', '2592001s', '31d', '60', 'soon', ''])('may not be %j', (text) => {
    expect(tokenLifetime.parse(text)).toBeUndefined();
  });
});

it.each([
  ['!#[]~', true],
  ['a:b/c', true],
  ['a b', false],
  ['a"b', false],
  ['a\\b', false],
  ['ä', false],
  ['\x7f', false],
  ['a\n', false],
  ['', false],
])('%j is a scope: %s', (text, is) => {
  expect(isScopeToken(text)).toBe(is);
});

describe('a scrypt hash', () => {
  const base64 = (bytes: number): string => Buffer.alloc(bytes, 1).toString('base64').replace(/=+$/, '');
  const phc = (cost: string, salt = 16, hash = 32): string =>
    `$scrypt$${cost}$${base64(salt)}$${base64(hash)}`;

  it.each([
    ['the most memory', phc('ln=18,r=8,p=1'), { ln: 18, r: 8, p: 1 }],
    ['the least work', phc('ln=1,r=1,p=1'), { ln: 1, r: 1, p: 1 }],
    ['the largest N of its blocks', phc('ln=15,r=1,p=99'), { ln: 15, r: 1, p: 99 }],
    ['the shortest salt and hash', phc('ln=1,r=1,p=1', 8, 16), { ln: 1, r: 1, p: 1 }],
    ['the longest hash', phc('ln=1,r=1,p=1', 100, 64), { ln: 1, r: 1, p: 1 }],
  ])('may have %s', (_, text, cost) => {
    expect(parseScryptHash(text)).toMatchObject({ text, cost });
  });

  it.each([
    ['more memory', phc('ln=18,r=9,p=1')],
    ['N too large for its blocks', phc('ln=16,r=1,p=1')],
    ['no N', phc('ln=0,r=1,p=1')],
    ['no blocks', phc('ln=1,r=0,p=1')],
    ['no lanes', phc('ln=1,r=1,p=0')],
    ['a short salt', phc('ln=1,r=1,p=1', 7)],
    ['a short hash', phc('ln=1,r=1,p=1', 16, 15)],
    ['a long hash', phc('ln=1,r=1,p=1', 16, 65)],
    ['a cost of three digits', phc('ln=001,r=1,p=1')],
    ['something before', `x${phc('ln=1,r=1,p=1')}`],
  ])('may not have %s', (_, text) => {
    expect(parseScryptHash(text)).toBeUndefined();
  });
});

describe('a key', () => {
  it.each([
    ['ES256', { kty: 'EC', crv: 'P-256' }],
    ['RS256', { kty: 'RSA' }],
    ['EdDSA', { kty: 'OKP', crv: 'Ed25519' }],
  ] as const)('made for %s is of its kind, and read again as the same', async (algorithm, kind) => {
    const key = await generateSigningKey(algorithm);
    expect(key.publicJwk).toMatchObject({ ...kind, kid: key.keyId, alg: algorithm, use: 'sig' });
    const pem = key.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
    expect(await parseSigningKey(pem, algorithm)).toMatchObject({ keyId: key.keyId });
    const { keyId, publicJwk } = key;
    expect(await parsePublishedKey(pem)).toEqual({ algorithm, keyId, publicJwk });
  });

  it('that suits no algorithm, or is none, is refused by what would', async () => {
    const { generateKeyPairSync } = await import('node:crypto');
    const x25519 = generateKeyPairSync('x25519')
      .privateKey.export({ type: 'pkcs8', format: 'pem' })
      .toString();
    expect(await parsePublishedKey(x25519)).toEqual({
      expected: 'an EC key on P-256, or an RSA key of at least 2048 bits, or an Ed25519 key',
    });
    expect(await parsePublishedKey('x')).toEqual({ expected: expect.stringContaining('in PEM') });
    expect(await parseSigningKey(x25519, 'EdDSA')).toEqual({ expected: 'an Ed25519 key for EdDSA' });
  });
});
