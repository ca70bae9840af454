/**
 * How an asker tells a token endpoint that takes it, as the broker does, which token an upstream has refused: without that
 * token, by its hash. An endpoint that takes it says so in its answers; no other is told anything.
 */

import { createHash, timingSafeEqual } from 'node:crypto';

/** The parameter of a request for a token. */
export const REFUSED_TOKEN_HASH = 'refused_token_sha256';

/** The field of an answer with a token, where its endpoint takes the parameter. Others ignore it (RFC 6749 §5.1). */
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
  // The last character has two bits too many: one hash has one text.
  return bytes.toString('base64url') === text ? bytes : undefined;
}

/** In a time that tells nothing of the token. @param hash of `readRefusedTokenHash`. */
export function isHashOf(hash: Buffer, token: string): boolean {
  return timingSafeEqual(hash, createHash('sha256').update(token).digest());
}
