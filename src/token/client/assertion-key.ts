/** The private key that assertions are signed with. */

import { createHash, createPrivateKey, createPublicKey, type KeyObject, type webcrypto } from 'node:crypto';
import type { AssertionAlgorithm } from '../../config/config.ts';
import { parseCertificate } from './certificate.ts';

export interface AssertionKey {
  readonly algorithm: AssertionAlgorithm;
  /** The `kid` under which the provider knows the public key. */
  readonly keyId?: string;
  /** The `x5t#S256` of the certificate under which the provider knows the public key. */
  readonly certificateThumbprint?: string;
  readonly privateKey: KeyObject;
}

interface AssertionKeySettings {
  /** Overrides the JWK's `kid` and, where there is none, the thumbprint of the public key (RFC 7638). */
  readonly keyId?: string | undefined;
  /** Overrides the JWK's `alg` and, where there is none, the first algorithm that suits the key. */
  readonly algorithm?: AssertionAlgorithm | undefined;
  /** PEM. With it, the certificate's thumbprint names the key, and a `kid` is sent only if one is given. */
  readonly certificate?: string | undefined;
}

/** What a text should have been, as a noun phrase. Holds nothing of the text. */
interface UnusableKey {
  readonly in: 'key' | 'certificate';
  readonly expected: string;
}

const EC_KEYS = 'an EC key on P-256, P-384 or P-521';
const RSA_KEYS = 'an RSA key of at least 2048 bits';
const SUPPORTED = `${EC_KEYS}, ${RSA_KEYS} or an Ed25519 key`;

const RSA_ALGORITHMS: readonly AssertionAlgorithm[] = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'];

/** The key in a PEM (PKCS#8, SEC 1 or PKCS#1) or in a JWK (RFC 7517). Its type decides which algorithms it may sign. */
export function parseAssertionKey(
  text: string,
  settings: AssertionKeySettings = {},
): AssertionKey | UnusableKey {
  const jwk = text.trimStart().startsWith('{') ? parseJwk(text) : undefined;
  const privateKey = jwk === undefined ? parsePrivateKey(text) : importJwk(jwk);
  if (privateKey === undefined) return wrongKey('an unencrypted private key in PEM or as a single JWK');
  const algorithms = algorithmsOf(privateKey);
  const [first] = algorithms;
  if (first === undefined) return wrongKey(SUPPORTED);
  const { alg, use = 'sig', kid } = jwk ?? {};
  const algorithm = settings.algorithm ?? algorithms.find((one) => one === alg) ?? first;
  if (use !== 'sig' || (alg !== undefined && alg !== algorithm)) {
    return wrongKey(
      `a JWK to sign with: ${SUPPORTED}, for ${settings.algorithm ?? 'an algorithm of its type'}`,
    );
  }
  if (!algorithms.includes(algorithm)) return wrongKey(`a key for ${algorithm}: ${keysFor(algorithm)}`);
  if (kid !== undefined && typeof kid !== 'string') return wrongKey('a JWK whose kid is a string');
  const keyId = settings.keyId ?? kid;
  if (settings.certificate === undefined) {
    return { algorithm, keyId: keyId ?? thumbprint(privateKey), privateKey };
  }
  const certificate = parseCertificate(settings.certificate);
  if (certificate === undefined) return { in: 'certificate', expected: 'a PEM certificate' };
  if (!certificate.checkPrivateKey(privateKey)) {
    return { in: 'certificate', expected: 'the certificate of the private key' };
  }
  return {
    algorithm,
    ...(keyId === undefined ? {} : { keyId }),
    // RFC 7515 §4.1.8.
    certificateThumbprint: createHash('sha256').update(certificate.raw).digest('base64url'),
    privateKey,
  };
}

function wrongKey(expected: string): UnusableKey {
  return { in: 'key', expected };
}

/** Undefined if the text holds no private key, or one that a passphrase protects. */
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

/** The algorithms that the key may sign with (RFC 7518 §3, RFC 8037 §3.1), the usual one first. */
function algorithmsOf(key: KeyObject): readonly AssertionAlgorithm[] {
  const { namedCurve, modulusLength = 0 } = key.asymmetricKeyDetails ?? {};
  switch (key.asymmetricKeyType) {
    case 'ec':
      if (namedCurve === 'prime256v1') return ['ES256'];
      if (namedCurve === 'secp384r1') return ['ES384'];
      return namedCurve === 'secp521r1' ? ['ES512'] : [];
    case 'rsa':
      return modulusLength >= 2048 ? RSA_ALGORITHMS : [];
    case 'ed25519':
      return ['EdDSA'];
    default:
      return [];
  }
}

function keysFor(algorithm: AssertionAlgorithm): string {
  if (RSA_ALGORITHMS.includes(algorithm)) return RSA_KEYS;
  const curves: Partial<Record<AssertionAlgorithm, string>> = {
    ES256: 'P-256',
    ES384: 'P-384',
    ES512: 'P-521',
  };
  const curve = curves[algorithm];
  return curve === undefined ? 'an Ed25519 key' : `an EC key on ${curve}`;
}

/** SHA-256 of the public key's required members, in lexical order and without white space (RFC 7638 §3.2). */
function thumbprint(privateKey: KeyObject): string {
  const { crv, e, kty, n, x, y } = createPublicKey(privateKey).export({ format: 'jwk' });
  // JSON leaves out members that a type of key lacks, and keeps the order.
  const members = JSON.stringify({ crv, e, kty, n, x, y });
  return createHash('sha256').update(members).digest('base64url');
}
