/** The private key that a client signs its assertions with. */

import { createHash, createPrivateKey, createPublicKey, type KeyObject, type webcrypto } from 'node:crypto';

export type AssertionAlgorithm = 'ES256' | 'RS256' | 'EdDSA';

export interface AssertionKey {
  readonly algorithm: AssertionAlgorithm;
  /** The `kid` that the provider knows the public key by. */
  readonly keyId: string;
  readonly privateKey: KeyObject;
}

const SUPPORTED = 'an EC key on P-256, an RSA key of at least 2048 bits or an Ed25519 key';

/**
 * The key in a PEM (PKCS#8, SEC 1 or PKCS#1) or in a JWK (RFC 7517). Its type decides the algorithm.
 * @param keyId instead of the JWK's `kid` or, where there is none, the thumbprint of the public key (RFC 7638).
 * @returns the key, or what was expected instead, as a noun phrase. Nothing of the text is in it.
 */
export function parseAssertionKey(
  text: string,
  keyId?: string,
): AssertionKey | { readonly expected: string } {
  const jwk = text.trimStart().startsWith('{') ? parseJwk(text) : undefined;
  const privateKey = jwk === undefined ? parsePrivateKey(text) : importJwk(jwk);
  if (privateKey === undefined) return { expected: 'an unencrypted private key in PEM or as a single JWK' };
  const algorithm = algorithmOf(privateKey);
  if (algorithm === undefined) return { expected: SUPPORTED };
  const { alg = algorithm, use = 'sig', kid } = jwk ?? {};
  if (alg !== algorithm || use !== 'sig') return { expected: `a JWK to sign with: ${SUPPORTED}` };
  if (kid !== undefined && typeof kid !== 'string') return { expected: 'a JWK whose kid is a string' };
  return { algorithm, keyId: keyId ?? kid ?? thumbprint(privateKey), privateKey };
}

/** Undefined when the text holds no private key, or one that a passphrase protects. */
export function parsePrivateKey(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey(pem);
  } catch {
    return undefined;
  }
}

type Jwk = webcrypto.JsonWebKey & Readonly<Record<string, unknown>>;

function parseJwk(text: string): Jwk {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

function importJwk(jwk: Jwk): KeyObject | undefined {
  try {
    return createPrivateKey({ key: jwk, format: 'jwk' });
  } catch {
    return undefined;
  }
}

function algorithmOf(key: KeyObject): AssertionAlgorithm | undefined {
  const { namedCurve, modulusLength = 0 } = key.asymmetricKeyDetails ?? {};
  if (key.asymmetricKeyType === 'ec' && namedCurve === 'prime256v1') return 'ES256';
  if (key.asymmetricKeyType === 'rsa' && modulusLength >= 2048) return 'RS256';
  return key.asymmetricKeyType === 'ed25519' ? 'EdDSA' : undefined;
}

/** SHA-256 of the public key's required members, in lexical order and without white space (RFC 7638 §3.2). */
function thumbprint(privateKey: KeyObject): string {
  const { crv, e, kty, n, x, y } = createPublicKey(privateKey).export({ format: 'jwk' });
  // JSON leaves out what a type of key does not have, and keeps the order.
  const members = JSON.stringify({ crv, e, kty, n, x, y });
  return createHash('sha256').update(members).digest('base64url');
}
