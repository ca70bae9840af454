import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { calculateJwkThumbprint, exportJWK } from 'jose';
import { describe, expect, it } from 'vitest';
import { parseAssertionKey } from '../../src/token/client/assertion-key.ts';

/** Node's types give each type of key its own set of encodings. */
interface PrivateKey {
  export(options: { readonly type: string; readonly format: 'pem' }): string | Buffer;
}

const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const ed = generateKeyPairSync('ed25519');

const pem = (key: KeyObject, type: 'pkcs8' | 'sec1' | 'pkcs1' = 'pkcs8') =>
  String((key as PrivateKey).export({ type, format: 'pem' }));
const jwk = (key: KeyObject, members: Record<string, unknown> = {}) =>
  JSON.stringify({ ...key.export({ format: 'jwk' }), ...members });

describe('a key', () => {
  it.each([
    ['PKCS#8, EC', pem(ec.privateKey), 'ES256', ec],
    ['SEC 1', pem(ec.privateKey, 'sec1'), 'ES256', ec],
    ['PKCS#1', pem(rsa.privateKey, 'pkcs1'), 'RS256', rsa],
    ['PKCS#8, Ed25519', pem(ed.privateKey), 'EdDSA', ed],
    ['JWK, EC', jwk(ec.privateKey), 'ES256', ec],
    ['JWK, RSA, with alg and use', jwk(rsa.privateKey, { alg: 'RS256', use: 'sig' }), 'RS256', rsa],
    ['JWK, OKP, after white space', `\n ${jwk(ed.privateKey)}\n`, 'EdDSA', ed],
  ])('%s', async (_name, text, algorithm, { publicKey }) => {
    const keyId = await calculateJwkThumbprint(await exportJWK(publicKey));
    expect(parseAssertionKey(text)).toMatchObject({ algorithm, keyId });
  });

  it('is known by the configured id, else by the one in the JWK', () => {
    const text = jwk(ec.privateKey, { kid: 'own' });
    expect(parseAssertionKey(text)).toMatchObject({ keyId: 'own' });
    expect(parseAssertionKey(text, 'configured')).toMatchObject({ keyId: 'configured' });
  });
});

describe('what is no usable key says what would be, and nothing of itself', () => {
  const small = generateKeyPairSync('rsa', { modulusLength: 1024 });
  const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' });
  const encrypted = ec.privateKey
    .export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' })
    .toString();
  it.each([
    ['nonsense', 'S3CRET', 'an unencrypted private key in PEM or as a single JWK'],
    ['half a PEM', pem(ec.privateKey).slice(0, 120), 'an unencrypted private key in PEM'],
    ['half a JWK', jwk(ec.privateKey).slice(0, 60), 'as a single JWK'],
    ['a public key', jwk(ec.publicKey), 'an unencrypted private key'],
    ['a set', JSON.stringify({ keys: [JSON.parse(jwk(ec.privateKey))] }), 'as a single JWK'],
    ['a passphrase', encrypted, 'an unencrypted private key'],
    ['RSA of 1024 bits', pem(small.privateKey), 'an RSA key of at least 2048 bits'],
    ['P-384', pem(p384.privateKey), 'an EC key on P-256'],
    ['a JWK for another algorithm', jwk(rsa.privateKey, { alg: 'PS256' }), 'a JWK to sign with'],
    ['a JWK to encrypt with', jwk(ec.privateKey, { use: 'enc' }), 'a JWK to sign with'],
    ['a kid that is no string', jwk(ec.privateKey, { kid: 7 }), 'a JWK whose kid is a string'],
  ])('%s', (_name, text, expected) => {
    expect(parseAssertionKey(text)).toEqual({ expected: expect.stringContaining(expected) });
    expect(JSON.stringify(parseAssertionKey(text))).not.toContain('S3CRET');
  });
});
