/** What the project's broker says beyond RFC 6749. */

import { createHash, timingSafeEqual } from 'node:crypto';

// Descriptions of refusals (RFC 6749 §5.2), by which sidecars decide what to do.

export const NO_SUCH_CREDENTIAL = 'no profile gives this service account such a credential';

export const ASSERTION_NOT_TAKEN = 'the service account token is not taken';

// Refused tokens are reported by hash, to endpoints that announce that they take it.

export const REFUSED_TOKEN_HASH = 'refused_token_sha256';

/** Other clients ignore this field (RFC 6749 §5.1). */
export const TAKES_REFUSED_TOKEN_HASH = 'refused_token_sha256_supported';

const HASH = /^[A-Za-z0-9_-]{43}$/;

/** SHA-256 in base64url. */
export function refusedTokenHash(token: string): string {
  return createHash('sha256').update(token).digest('base64url');
}

export function readRefusedTokenHash(text: string): Buffer | undefined {
  if (!HASH.test(text)) return undefined;
  const bytes = Buffer.from(text, 'base64url');
  // The last character has two unused bits, so each hash has one valid text.
  return bytes.toString('base64url') === text ? bytes : undefined;
}

/** Compares in constant time. */
export function isHashOf(hash: Buffer, token: string): boolean {
  return timingSafeEqual(hash, createHash('sha256').update(token).digest());
}
