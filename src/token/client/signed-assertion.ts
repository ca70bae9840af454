/** Assertions that are signed here (RFC 7523 §3): a client's about itself, and those that serve as a grant. */

import { constants, sign } from 'node:crypto';
import type { AssertionKey } from './assertion-key.ts';

interface AssertionFacts {
  readonly issuer: string;
  /** `sub`; left out if undefined. */
  readonly subject?: string | undefined;
  readonly audience: string;
  /** Milliseconds since the Unix epoch. */
  readonly nowMs: number;
  /** From now to `exp`. */
  readonly lifetimeSeconds: number;
  /** The `jti` claim; never the same twice. Left out if undefined. */
  readonly assertionId?: string | undefined;
  /** Claims besides those above. */
  readonly claims?: Readonly<Record<string, unknown>>;
}

/**
 * How far a provider's clock may be behind ours: many refuse what was issued in their future, some (ory/fosite) by as
 * little as a second. `iat` and `nbf` are set back by this much.
 */
const CLOCK_TOLERANCE_SECONDS = 30;

/**
 * A signed assertion. No JOSE library: with the algorithm fixed by the key and nothing to parse or verify, compact
 * serialization (RFC 7515 §7.1) is these few lines, and a library would cost every pod its memory.
 */
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
    // JSON leaves out what is undefined.
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.');
  return `${input}.${signature(key, Buffer.from(input)).toString('base64url')}`;
}

function signature({ algorithm, privateKey }: AssertionKey, input: Buffer): Buffer {
  if (algorithm === 'EdDSA') return sign(null, input, privateKey);
  const digest = `sha${algorithm.slice(2)}`;
  switch (algorithm.slice(0, 2)) {
    case 'ES':
      // RFC 7518 §3.4: the two numbers side by side, not Node's default DER.
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
