/**
 * Remembers scrypt's verdicts on whether a secret belongs to a hash. Such a fact never changes, as each hash has its
 * own salt, so it outlives every reload of the clients. Only digests under a key that this process alone knows are
 * kept, never a secret.
 */

import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { LruMap } from '../platform/limits/lru-map.ts';
import type { ScryptHash } from './secret-hashing.ts';

export interface DerivationMemory {
  /** Takes the same time whatever is known. Without a hash the answer is `unknown`. */
  recall(hash: ScryptHash | undefined, secret: string): 'right' | 'wrong' | 'unknown';
  learn(hash: ScryptHash, secret: string, right: boolean): void;
  /** Forgets everything about all other hashes. */
  keepOnly(hashes: ReadonlySet<string>): void;
  /** The number of facts kept. */
  readonly size: { readonly right: number; readonly wrong: number };
}

/** A pod with a wrong secret keeps sending the same one; 44 bytes and a place in the table each. */
const MAX_WRONG_SECRETS = 4096;

/** No digest is all zeros. */
const NONE = Buffer.alloc(32);

/** @param mostWrong beyond this the least recently used wrong secret is forgotten. Right ones are one per hash. */
export function createDerivationMemory(mostWrong = MAX_WRONG_SECRETS): DerivationMemory {
  const key = randomBytes(32);
  const right = new Map<string, Buffer>();
  /** From a digest to its hash. */
  const wrong = new LruMap<string, string>({ max: mostWrong });

  function digestOf(hash: ScryptHash | undefined, secret: string): Buffer {
    // The PHC string holds no NUL, so no other pair gives the same text; nor is any PHC string "undefined".
    return createHmac('sha256', key).update(`${hash?.text}\0${secret}`).digest();
  }

  return {
    recall(hash, secret) {
      const digest = digestOf(hash, secret);
      if (timingSafeEqual((hash && right.get(hash.text)) ?? NONE, digest)) return 'right';
      return wrong.get(digest.toString('base64')) === undefined ? 'unknown' : 'wrong';
    },
    learn(hash, secret, isRight) {
      const digest = digestOf(hash, secret);
      if (isRight) {
        right.set(hash.text, digest);
        return;
      }
      wrong.set(digest.toString('base64'), hash.text);
    },
    keepOnly(hashes) {
      for (const text of right.keys()) if (!hashes.has(text)) right.delete(text);
      for (const [name, about] of wrong.entries()) if (!hashes.has(about)) wrong.delete(name);
    },
    get size() {
      return { right: right.size, wrong: wrong.size };
    },
  };
}
