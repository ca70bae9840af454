/** Assertions that a client signs about itself (RFC 7523 §3). */

import { sign } from 'node:crypto';
import type { AssertionKey } from './assertion-key.ts';

/** Long enough for clocks that differ, too short to be worth stealing: an assertion is used once, at once. */
const LIFETIME_SECONDS = 60;

export interface AssertionFacts {
  readonly clientId: string;
  readonly audience: string;
  /** Milliseconds since the Unix epoch. */
  readonly nowMs: number;
  /** The `jti` claim; never the same twice. */
  readonly assertionId: string;
}

/**
 * A signed assertion. Not with a JOSE library: with the algorithm fixed by the key and nothing to parse or verify,
 * compact serialization (RFC 7515 §7.1) is these lines, and a library would cost every pod its memory.
 */
export function signAssertion(key: AssertionKey, facts: AssertionFacts): string {
  const { clientId, audience, nowMs, assertionId } = facts;
  const issuedAt = Math.floor(nowMs / 1000);
  const input = [
    { alg: key.algorithm, kid: key.keyId, typ: 'JWT' },
    {
      iss: clientId,
      sub: clientId,
      aud: audience,
      jti: assertionId,
      iat: issuedAt,
      exp: issuedAt + LIFETIME_SECONDS,
    },
  ]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.');
  return `${input}.${signature(key, Buffer.from(input)).toString('base64url')}`;
}

function signature({ algorithm, privateKey }: AssertionKey, input: Buffer): Buffer {
  switch (algorithm) {
    case 'ES256':
      // RFC 7518 §3.4: the two numbers side by side, not the DER that Node gives otherwise.
      return sign('sha256', input, { key: privateKey, dsaEncoding: 'ieee-p1363' });
    case 'RS256':
      return sign('sha256', input, privateKey);
    case 'EdDSA':
      return sign(null, input, privateKey);
  }
}
