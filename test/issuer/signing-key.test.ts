import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { generateSigningKey, parseSigningKey, SIGNING_ALGORITHMS } from '../../src/issuer/keys.ts';

const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const ec384 = generateKeyPairSync('ec', { namedCurve: 'P-384' });
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const shortRsa = generateKeyPairSync('rsa', { modulusLength: 1024 });
const pss = generateKeyPairSync('rsa-pss', { modulusLength: 2048 });
const ed = generateKeyPairSync('ed25519');

const pem = (key: KeyObject, type: 'pkcs8' | 'sec1' | 'pkcs1' = 'pkcs8'): string =>
  key.export({ type, format: 'pem' } as never) as unknown as string;

describe('parseSigningKey', () => {
  it.each([
    ['PKCS#8', 'ES256', pem(ec.privateKey)],
    ['SEC 1', 'ES256', pem(ec.privateKey, 'sec1')],
    ['PKCS#8', 'RS256', pem(rsa.privateKey)],
    ['PKCS#1', 'RS256', pem(rsa.privateKey, 'pkcs1')],
    ['PKCS#8', 'EdDSA', pem(ed.privateKey)],
  ] as const)('takes %s for %s', async (_format, algorithm, text) => {
    const key = await parseSigningKey(text, algorithm);
    expect(key).toMatchObject({ algorithm, publicJwk: { alg: algorithm, use: 'sig' } });
    expect(key).not.toHaveProperty('publicJwk.d');
  });

  it('gives the same key the same id', async () => {
    const [first, second] = [pem(ec.privateKey), pem(ec.privateKey, 'sec1')];
    const id = expect.objectContaining({ keyId: expect.stringMatching(/^[\w-]{43}$/) });
    expect(await parseSigningKey(first, 'ES256')).toEqual(id);
    expect(await parseSigningKey(first, 'ES256')).toHaveProperty(
      'keyId',
      ((await parseSigningKey(second, 'ES256')) as { keyId: string }).keyId,
    );
  });

  it.each([
    ['an RSA key', 'ES256', pem(rsa.privateKey), /P-256.*RS256/],
    ['an Ed25519 key', 'RS256', pem(ed.privateKey), /RSA.*EdDSA/],
    ['a key on P-384', 'ES256', pem(ec384.privateKey), /P-256/],
    ['a short RSA key', 'RS256', pem(shortRsa.privateKey), /2048/],
    ['an RSA-PSS key', 'RS256', pem(pss.privateKey), /RSA/],
    ['a public key', 'ES256', ec.publicKey.export({ type: 'spki', format: 'pem' }) as string, /private key/],
    [
      'an encrypted key',
      'ES256',
      ec.privateKey.export({
        type: 'pkcs8',
        format: 'pem',
        cipher: 'aes-256-cbc',
        passphrase: 'x',
      }) as string,
      /unencrypted/,
    ],
    ['no PEM', 'ES256', 'secret', /PEM/],
  ] as const)('refuses %s for %s, and says what it wants', async (_name, algorithm, text, expected) => {
    expect(await parseSigningKey(text, algorithm)).toEqual({ expected: expect.stringMatching(expected) });
  });
});

describe('generateSigningKey', () => {
  it.each(SIGNING_ALGORITHMS)('makes another key for %s each time', async (algorithm) => {
    const [a, b] = [await generateSigningKey(algorithm), await generateSigningKey(algorithm)];
    expect(a.algorithm).toBe(algorithm);
    expect(a.keyId).not.toBe(b.keyId);
  });
});
