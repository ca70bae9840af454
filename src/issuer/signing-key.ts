/** The private key that signs, and the public one in the JWKS. */

import { createPrivateKey, createPublicKey, generateKeyPair, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import { calculateJwkThumbprint, type JWK } from 'jose';

export const SIGNING_ALGORITHMS = ['ES256', 'RS256', 'EdDSA'] as const;
export type SigningAlgorithm = (typeof SIGNING_ALGORITHMS)[number];

/** A key as verifiers see it. */
export interface PublishedKey {
  readonly algorithm: SigningAlgorithm;
  /** Thumbprint of the public key (RFC 7638): the same key has the same id in every replica and after every start. */
  readonly keyId: string;
  /** With `kid`, `alg` and `use`; nothing private. */
  readonly publicJwk: JWK;
}

export interface SigningKey extends PublishedKey {
  readonly privateKey: KeyObject;
}

const KEY_EXPECTED: Readonly<Record<SigningAlgorithm, string>> = {
  ES256: 'an EC key on P-256',
  RS256: 'an RSA key of at least 2048 bits',
  EdDSA: 'an Ed25519 key',
};

const generate = promisify(generateKeyPair);

/** A new key: tokens signed with it cannot be verified after the process has ended. */
export async function generateSigningKey(algorithm: SigningAlgorithm): Promise<SigningKey> {
  return await signingKey(algorithm, await generatePrivateKey(algorithm));
}

/**
 * The key in a PEM: PKCS#8, or the older SEC 1 and PKCS#1.
 * @returns the key, or what was expected instead, as a noun phrase that holds nothing of the PEM.
 */
export async function parseSigningKey(
  pem: string,
  algorithm: SigningAlgorithm,
): Promise<SigningKey | { readonly expected: string }> {
  let privateKey: KeyObject;
  try {
    privateKey = createPrivateKey(pem);
  } catch {
    return { expected: `an unencrypted private key in PEM: ${KEY_EXPECTED[algorithm]}` };
  }
  const suits = algorithmOf(privateKey);
  if (suits !== algorithm) {
    const hint = suits === undefined ? '' : `; this one is for ${suits}`;
    return { expected: `${KEY_EXPECTED[algorithm]} for ${algorithm}${hint}` };
  }
  return await signingKey(algorithm, privateKey);
}

/**
 * The key in a PEM, of which only the public half is kept: a private key as for `parseSigningKey`, or a public one.
 * @returns the key, or what was expected instead, as a noun phrase that holds nothing of the PEM.
 */
export async function parsePublishedKey(pem: string): Promise<PublishedKey | { readonly expected: string }> {
  let publicKey: KeyObject;
  try {
    publicKey = createPublicKey(pem);
  } catch {
    return { expected: 'a public or an unencrypted private key in PEM' };
  }
  const algorithm = algorithmOf(publicKey);
  if (algorithm === undefined) return { expected: Object.values(KEY_EXPECTED).join(', or ') };
  return await publishedKey(algorithm, publicKey);
}

async function signingKey(algorithm: SigningAlgorithm, privateKey: KeyObject): Promise<SigningKey> {
  return { ...(await publishedKey(algorithm, createPublicKey(privateKey))), privateKey };
}

async function publishedKey(algorithm: SigningAlgorithm, publicKey: KeyObject): Promise<PublishedKey> {
  const jwk = publicKey.export({ format: 'jwk' }) as JWK;
  const keyId = await calculateJwkThumbprint(jwk);
  return { algorithm, keyId, publicJwk: { ...jwk, kid: keyId, alg: algorithm, use: 'sig' } };
}

async function generatePrivateKey(algorithm: SigningAlgorithm): Promise<KeyObject> {
  switch (algorithm) {
    case 'ES256':
      return (await generate('ec', { namedCurve: 'P-256' })).privateKey;
    case 'RS256':
      return (await generate('rsa', { modulusLength: 2048 })).privateKey;
    case 'EdDSA':
      return (await generate('ed25519')).privateKey;
  }
}

function algorithmOf(key: KeyObject): SigningAlgorithm | undefined {
  const { namedCurve, modulusLength = 0 } = key.asymmetricKeyDetails ?? {};
  if (namedCurve === 'prime256v1') return 'ES256';
  if (key.asymmetricKeyType === 'rsa' && modulusLength >= 2048) return 'RS256';
  return key.asymmetricKeyType === 'ed25519' ? 'EdDSA' : undefined;
}
