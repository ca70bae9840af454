/** A token as stored where others may read and write: encrypted, and bound to its name. */

import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { parseObject } from '../../platform/json-object.ts';
import { TOKEN_LIMITS, wrongToken } from '../../token/provider/token-response.ts';

/** Derived from one secret. */
export interface CacheKey {
  readonly naming: Buffer;
  readonly sealing: Buffer;
}

interface StoredToken {
  readonly accessToken: string;
  /** From the sending of its request. */
  readonly lifetimeMs: number;
  /** By the requester's clock. */
  readonly requestedAtMs: number;
}

export const SECRET_BYTES = 32;
const ALGORITHM = 'aes-256-gcm';
/** NIST SP 800-38D §8.2.2: random 96-bit nonces suffice for 2^32 values. */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

export const NAME_PREFIX = 'token-sidecar:broker:';

/** Characters in base64: the longest token, escaped, with other fields. */
export const MAX_VALUE_LENGTH = Math.ceil((2 * TOKEN_LIMITS.bytes + 256) / 3) * 4;

/** @param secret of `SECRET_BYTES`. */
export function deriveKey(secret: Buffer): CacheKey {
  const derive = (purpose: string): Buffer =>
    Buffer.from(hkdfSync('sha256', secret, '', `token-sidecar broker cache 1: ${purpose}`, 32));
  return { naming: derive('names'), sealing: derive('values') };
}

/** Reveals nothing of the identity without the key. */
export function nameOf({ naming }: CacheKey, identity: string): string {
  return `${NAME_PREFIX}1:${createHmac('sha256', naming).update(identity).digest('base64url')}`;
}

export function seal({ sealing }: CacheKey, name: string, token: StoredToken): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(ALGORITHM, sealing, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(Buffer.from(name));
  const { accessToken, lifetimeMs, requestedAtMs } = token;
  const text = JSON.stringify({ accessToken, lifetimeMs, requestedAtMs });
  const encrypted = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), encrypted]).toString('base64');
}

/** @returns undefined for anything not sealed with this key and name. */
export function unseal({ sealing }: CacheKey, name: string, value: string): StoredToken | undefined {
  if (value.length > MAX_VALUE_LENGTH || !/^[A-Za-z0-9+/]+={0,2}$/.test(value)) return undefined;
  const bytes = Buffer.from(value, 'base64');
  if (bytes.length <= NONCE_BYTES + TAG_BYTES) return undefined;
  const decipher = createDecipheriv(ALGORITHM, sealing, bytes.subarray(0, NONCE_BYTES), {
    authTagLength: TAG_BYTES,
  });
  decipher.setAAD(Buffer.from(name));
  decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
  try {
    const text = Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]);
    return readToken(text.toString('utf8'));
  } catch {
    return undefined;
  }
}

/** Another version of this program may have written it. */
function readToken(text: string): StoredToken | undefined {
  const { accessToken, lifetimeMs, requestedAtMs } = parseObject(text) ?? {};
  if (wrongToken(accessToken) !== undefined) return undefined;
  if (
    typeof lifetimeMs !== 'number' ||
    !(lifetimeMs > 0 && lifetimeMs <= TOKEN_LIMITS.lifetimeSeconds * 1000)
  ) {
    return undefined;
  }
  if (typeof requestedAtMs !== 'number' || !Number.isFinite(requestedAtMs)) return undefined;
  return { accessToken: accessToken as string, lifetimeMs, requestedAtMs };
}
