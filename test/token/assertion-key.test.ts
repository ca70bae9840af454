import { createHash, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { calculateJwkThumbprint, exportJWK } from 'jose';
import { describe, expect, it } from 'vitest';
import { parseAssertionKey } from '../../src/token/client/assertion.ts';
import { createCertificateAuthority } from '../support/certificate-authority.ts';

/** Node's types give each type of key its own set of encodings. */
interface PrivateKey {
  export(options: { readonly type: string; readonly format: 'pem' }): string | Buffer;
}

const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' });
const p521 = generateKeyPairSync('ec', { namedCurve: 'P-521' });
const ed = generateKeyPairSync('ed25519');

const pem = (key: KeyObject, type: 'pkcs8' | 'sec1' | 'pkcs1' = 'pkcs8') =>
  String((key as PrivateKey).export({ type, format: 'pem' }));
const jwk = (key: KeyObject, members: Record<string, unknown> = {}) =>
  JSON.stringify({ ...key.export({ format: 'jwk' }), ...members });

describe('a signing key for assertions', () => {
  it.each([
    ['PKCS#8, EC', pem(ec.privateKey), 'ES256', ec],
    ['SEC 1', pem(ec.privateKey, 'sec1'), 'ES256', ec],
    ['PKCS#1', pem(rsa.privateKey, 'pkcs1'), 'RS256', rsa],
    ['PKCS#8, P-384', pem(p384.privateKey), 'ES384', p384],
    ['PKCS#8, P-521', pem(p521.privateKey), 'ES512', p521],
    ['JWK, RSA, with alg PS512', jwk(rsa.privateKey, { alg: 'PS512' }), 'PS512', rsa],
    ['PKCS#8, Ed25519', pem(ed.privateKey), 'EdDSA', ed],
    ['JWK, EC', jwk(ec.privateKey), 'ES256', ec],
    ['JWK, RSA, with alg and use', jwk(rsa.privateKey, { alg: 'RS256', use: 'sig' }), 'RS256', rsa],
    ['JWK, OKP, after white space', `\n ${jwk(ed.privateKey)}\n`, 'EdDSA', ed],
  ])('%s', async (_name, text, algorithm, { publicKey }) => {
    const keyId = await calculateJwkThumbprint(await exportJWK(publicKey));
    expect(parseAssertionKey(text)).toMatchObject({ algorithm, keyId });
  });

  it('has the configured key id, else that of its JWK', () => {
    const text = jwk(ec.privateKey, { kid: 'own' });
    expect(parseAssertionKey(text)).toMatchObject({ keyId: 'own' });
    expect(parseAssertionKey(text, { keyId: 'configured' })).toMatchObject({ keyId: 'configured' });
  });
});

describe('a configured algorithm', () => {
  it('must be one that the key can sign', () => {
    expect(parseAssertionKey(pem(rsa.privateKey), { algorithm: 'PS256' })).toMatchObject({
      algorithm: 'PS256',
    });
    expect(parseAssertionKey(pem(ed.privateKey), { algorithm: 'EdDSA' })).toMatchObject({
      algorithm: 'EdDSA',
    });
  });

  it.each([
    ['PS256', pem(ec.privateKey), 'a key for PS256: an RSA key of at least 2048 bits'],
    ['ES384', pem(ec.privateKey), 'a key for ES384: an EC key on P-384'],
    ['ES256', pem(rsa.privateKey), 'a key for ES256: an EC key on P-256'],
    ['EdDSA', pem(rsa.privateKey), 'a key for EdDSA: an Ed25519 key'],
    ['RS256', jwk(rsa.privateKey, { alg: 'PS256' }), 'for RS256'],
  ] as const)('%s is refused with a key made for another one', (algorithm, text, expected) => {
    expect(parseAssertionKey(text, { algorithm })).toEqual({
      in: 'key',
      expected: expect.stringContaining(expected),
    });
  });
});

describe('a certificate', () => {
  const shop = createCertificateAuthority('Test CA').issue('shop');

  it('is named by its thumbprint (RFC 7515 §4.1.8), and kid is sent only if configured', () => {
    const der = Buffer.from(shop.cert.replace(/-----[^-]+-----|\s/g, ''), 'base64');
    const thumbprint = createHash('sha256').update(der).digest('base64url');
    const settings = { certificate: shop.cert };
    expect(parseAssertionKey(shop.key, settings)).toMatchObject({ certificateThumbprint: thumbprint });
    expect(parseAssertionKey(shop.key, settings)).not.toHaveProperty('keyId');
    expect(parseAssertionKey(shop.key, { ...settings, keyId: 'k' })).toMatchObject({ keyId: 'k' });
  });

  it.each([
    ['is none', 'S3CRET', 'a PEM certificate'],
    [
      'is that of another key',
      createCertificateAuthority('Test CA').issue('other').cert,
      'the certificate of the private key',
    ],
  ])('that %s is reported as wrong', (_name, certificate, expected) => {
    expect(parseAssertionKey(shop.key, { certificate })).toEqual({ in: 'certificate', expected });
  });
});

describe('an unusable key is reported with what would be usable, and without its content', () => {
  const small = generateKeyPairSync('rsa', { modulusLength: 1024 });
  const k256 = generateKeyPairSync('ec', { namedCurve: 'secp256k1' });
  const ed448 = generateKeyPairSync('ed448');
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
    ['secp256k1', pem(k256.privateKey), 'an EC key on P-256, P-384 or P-521'],
    ['Ed448', pem(ed448.privateKey), 'or an Ed25519 key'],
    ['a JWK for another algorithm', jwk(rsa.privateKey, { alg: 'RSA-OAEP' }), 'a JWK to sign with'],
    ['a JWK to encrypt with', jwk(ec.privateKey, { use: 'enc' }), 'a JWK to sign with'],
    ['a kid that is no string', jwk(ec.privateKey, { kid: 7 }), 'a JWK whose kid is a string'],
  ])('%s', (_name, text, expected) => {
    expect(parseAssertionKey(text)).toEqual({ in: 'key', expected: expect.stringContaining(expected) });
    expect(JSON.stringify(parseAssertionKey(text))).not.toContain('S3CRET');
  });
});
