/**
 * How a requester tells a token endpoint, such as the broker, which token an upstream has refused: by the token's hash.
 * An endpoint announces in its answers that it takes the hash; others are never sent it.
 */

import { createHash, timingSafeEqual } from 'node:crypto';

/** The parameter of a request for a token. */
export const REFUSED_TOKEN_HASH = 'refused_token_sha256';

/** The field of an answer by which its endpoint announces that it takes the parameter. Others ignore it (RFC 6749 §5.1). */
export const TAKES_REFUSED_TOKEN_HASH = 'refused_token_sha256_supported';

const HASH = /^[A-Za-z0-9_-]{43}$/;

/** SHA-256 in base64url. */
export function refusedTokenHash(token: string): string {
  return createHash('sha256').update(token).digest('base64url');
}

/** @returns undefined for a text that is no such hash. */
export function readRefusedTokenHash(text: string): Buffer | undefined {
  if (!HASH.test(text)) return undefined;
  const bytes = Buffer.from(text, 'base64url');
  // The last character has two unused bits: each hash has exactly one valid text.
  return bytes.toString('base64url') === text ? bytes : undefined;
}

/** Compares in constant time. @param hash from `readRefusedTokenHash`. */
export function isHashOf(hash: Buffer, token: string): boolean {
  return timingSafeEqual(hash, createHash('sha256').update(token).digest());
}
