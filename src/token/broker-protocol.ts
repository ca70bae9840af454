/** What the project's broker says beyond RFC 6749. */

import { createHash, timingSafeEqual } from 'node:crypto';

/** Descriptions of refusals (RFC 6749 §5.2), by which sidecars decide what to do. */
export const REFUSALS = {
  noSuchCredential: 'no profile gives this service account such a credential',
  assertionNotTaken: 'the service account token is not taken',
} as const;

/** Refused tokens are reported by hash, to endpoints that announce that they take it. */
export const REFUSED_TOKEN = {
  parameter: 'refused_token_sha256',
  /** Other clients ignore this field (RFC 6749 §5.1). */
  announcement: 'refused_token_sha256_supported',
} as const;

const HASH = /^[A-Za-z0-9_-]{43}$/;

export const tokenHash = {
  /** SHA-256 in base64url. */
  of(token: string): string {
    return createHash('sha256').update(token).digest('base64url');
  },

  read(text: string): Buffer | undefined {
    if (!HASH.test(text)) return undefined;
    const bytes = Buffer.from(text, 'base64url');
    // The last character has two unused bits, so each hash has one valid text.
    return bytes.toString('base64url') === text ? bytes : undefined;
  },

  /** Compares in constant time. */
  isOf(hash: Buffer, token: string): boolean {
    return timingSafeEqual(hash, createHash('sha256').update(token).digest());
  },
};
