/** Assertions that are signed here (RFC 7523 §3). */

import {
  constants,
  createHash,
  createPrivateKey,
  createPublicKey,
  type KeyObject,
  sign,
  type webcrypto,
  X509Certificate,
} from 'node:crypto';
import type { AssertionAlgorithm } from '../../config/config.ts';

export interface AssertionKey {
  readonly algorithm: AssertionAlgorithm;
  readonly keyId?: string;
  /** RFC 7638 §3. */
  readonly thumbprint: string;
  /** The certificate's `x5t#S256`. */
  readonly certificateThumbprint?: string;
  readonly privateKey: KeyObject;
}

interface AssertionKeySettings {
  /** Overrides the JWK's `kid` and the public key's thumbprint (RFC 7638). */
  readonly keyId?: string | undefined;
  /** Overrides the JWK's `alg` and the first algorithm that suits the key. */
  readonly algorithm?: AssertionAlgorithm | undefined;
  /** PEM. Its thumbprint names the key unless a `kid` is given. */
  readonly certificate?: string | undefined;
}

/** `expected` holds nothing of the text. */
interface InvalidKey {
  readonly in: 'key' | 'certificate';
  readonly expected: string;
}

const EC_KEYS = 'an EC key on P-256, P-384 or P-521';
const RSA_KEYS = 'an RSA key of at least 2048 bits';
const SUPPORTED = `${EC_KEYS}, ${RSA_KEYS} or an Ed25519 key`;

const RSA_ALGORITHMS: readonly AssertionAlgorithm[] = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'];

/** From PEM (PKCS#8, SEC 1 or PKCS#1) or JWK (RFC 7517). */
export function parseAssertionKey(
  text: string,
  settings: AssertionKeySettings = {},
): AssertionKey | InvalidKey {
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
  const thumbprint = thumbprintOf(privateKey);
  if (settings.certificate === undefined) {
    return { algorithm, keyId: keyId ?? thumbprint, thumbprint, privateKey };
  }
  const certificate = parseCertificate(settings.certificate);
  if (certificate === undefined) return { in: 'certificate', expected: 'a PEM certificate' };
  if (!certificate.checkPrivateKey(privateKey)) {
    return { in: 'certificate', expected: 'the certificate of the private key' };
  }
  return {
    algorithm,
    ...(keyId === undefined ? {} : { keyId }),
    thumbprint,
    // RFC 7515 §4.1.8.
    certificateThumbprint: createHash('sha256').update(certificate.raw).digest('base64url'),
    privateKey,
  };
}

function wrongKey(expected: string): InvalidKey {
  return { in: 'key', expected };
}

/** Undefined if there is no key, or a passphrase protects it. */
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

/** RFC 7518 §3 and RFC 8037 §3.1, the usual one first. */
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

/** RFC 7638 §3.2: required members in lexical order, without white space. */
export function thumbprintOf(privateKey: KeyObject): string {
  const { crv, e, kty, n, x, y } = createPublicKey(privateKey).export({ format: 'jwk' });
  const members = JSON.stringify({ crv, e, kty, n, x, y });
  return createHash('sha256').update(members).digest('base64url');
}

export function parseCertificate(pem: string): X509Certificate | undefined {
  try {
    return new X509Certificate(pem);
  } catch {
    return undefined;
  }
}

interface AssertionFacts {
  readonly issuer: string;
  readonly subject?: string | undefined;
  readonly audience: string;
  /** Milliseconds since the Unix epoch. */
  readonly nowMs: number;
  /** From now to `exp`. */
  readonly lifetimeSeconds: number;
  /** `jti`; never used twice. */
  readonly assertionId?: string | undefined;
  readonly claims?: Readonly<Record<string, unknown>>;
}

/** Some providers (ory/fosite) refuse what was issued a second in their future, so `iat` and `nbf` are set back. */
const CLOCK_TOLERANCE_SECONDS = 30;

/** Compact serialization (RFC 7515 §7.1). A JOSE library would cost every pod memory. */
export function signAssertion(key: AssertionKey, facts: AssertionFacts): string {
  const now = Math.floor(facts.nowMs / 1000);
  const input = [
    { alg: key.algorithm, kid: key.keyId, 'x5t#S256': key.certificateThumbprint, typ: 'JWT' },
    {
      ...facts.claims,
      iss: facts.issuer,
      sub: facts.subject,
      aud: facts.audience,
      jti: facts.assertionId,
      iat: now - CLOCK_TOLERANCE_SECONDS,
      nbf: now - CLOCK_TOLERANCE_SECONDS,
      exp: now + facts.lifetimeSeconds,
    },
  ]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.');
  return `${input}.${signature(key, Buffer.from(input)).toString('base64url')}`;
}

export function signature(
  { algorithm, privateKey }: Pick<AssertionKey, 'algorithm' | 'privateKey'>,
  input: Buffer,
): Buffer {
  if (algorithm === 'EdDSA') return sign(null, input, privateKey);
  const digest = `sha${algorithm.slice(2)}`;
  switch (algorithm.slice(0, 2)) {
    case 'ES':
      // RFC 7518 §3.4: two numbers side by side, not Node's default DER.
      return sign(digest, input, { key: privateKey, dsaEncoding: 'ieee-p1363' });
    case 'PS':
      // RFC 7518 §3.5: a salt as long as the digest.
      return sign(digest, input, {
        key: privateKey,
        padding: constants.RSA_PKCS1_PSS_PADDING,
        saltLength: constants.RSA_PSS_SALTLEN_DIGEST,
      });
    default:
      return sign(digest, input, privateKey);
  }
}
