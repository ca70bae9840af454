/** What is remembered of tokens, by their hash: so many in all, and few of each caller, so that none drives out the rest. */

import type { Instant } from '../clock.ts';
import { callerKey, type ServiceAccountCaller } from './caller.ts';

export type KnownToken = ConfirmedToken | DeniedToken;

export interface ConfirmedToken {
  readonly kind: 'confirmed';
  readonly caller: ServiceAccountCaller;
  readonly expiresAt: Instant;
  /** When the API server last said so. */
  readonly reviewedAt: Instant;
}

export interface DeniedToken {
  readonly kind: 'denied';
  readonly caller: ServiceAccountCaller;
  readonly until: Instant;
}

export interface KnownTokens {
  get(hash: string): KnownToken | undefined;
  /** The oldest one makes room. */
  set(hash: string, token: KnownToken): void;
  delete(hash: string): void;
  readonly size: number;
}

/** A few hundred bytes each. */
export const MOST_KNOWN = 20_000;

/** The kubelet replaces a token once in its life: a pod has the old and the new one, of each volume. */
export const MOST_OF_ONE_CALLER = 8;

export function createKnownTokens(): KnownTokens {
  /** In the order of being set. */
  const tokens = new Map<string, KnownToken>();
  const ofCallers = new Map<string, Set<string>>();

  function remove(hash: string): void {
    const token = tokens.get(hash);
    if (token === undefined) return;
    tokens.delete(hash);
    const key = callerKey(token.caller);
    const own = ofCallers.get(key);
    own?.delete(hash);
    if (own?.size === 0) ofCallers.delete(key);
  }

  return {
    get: (hash) => tokens.get(hash),
    set(hash, token) {
      remove(hash);
      const key = callerKey(token.caller);
      const own = ofCallers.get(key) ?? new Set();
      const [oldestOfCaller] = own;
      if (own.size >= MOST_OF_ONE_CALLER) remove(oldestOfCaller as string);
      const [oldest] = tokens.keys();
      if (tokens.size >= MOST_KNOWN) remove(oldest as string);
      own.add(hash);
      ofCallers.set(key, own);
      tokens.set(hash, token);
    },
    delete: remove,
    get size() {
      return tokens.size;
    },
  };
}
