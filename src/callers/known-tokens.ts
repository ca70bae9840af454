/**
 * What is remembered of tokens, by their hash, for as long as it is of use: so many in all, of which a caller with many of them makes room
 * for the rest.
 */

import { elapsedMs, type Instant, isPast } from '../clock.ts';
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
  /** Forgets what is of no use any more. Where there is no room then, the oldest of a caller with many makes it, or the oldest of all. */
  set(hash: string, token: KnownToken, now: Instant): void;
  delete(hash: string): void;
  readonly size: number;
}

/** A few hundred bytes each. */
export const MOST_KNOWN = 20_000;

/**
 * So many of a caller's make room only for its own. The kubelet replaces a token once in its life: a pod has the old and
 * the new one, of each volume. Tokens that are bound to no pod may have more holders than that, and all of them are one
 * caller: beyond these its tokens stay for as long as nobody else needs the room.
 */
export const KEPT_OF_ONE_CALLER = 8;

/** @param usefulForMs how long a token is remembered after its last review. */
export function createKnownTokens(usefulForMs: number): KnownTokens {
  /** In the order of being set. */
  const tokens = new Map<string, KnownToken>();
  /** The one of a caller, as most have, or all in the order of being set: a set of one takes as much as the rest of what is kept of it. */
  const ofCallers = new Map<string, string | Set<string>>();
  /** Callers with more than are kept for them; first who has been so for longest. */
  const withMany = new Set<string>();

  function remove(hash: string): void {
    const token = tokens.get(hash);
    if (token === undefined) return;
    tokens.delete(hash);
    const key = callerKey(token.caller);
    const own = ofCallers.get(key);
    if (!(own instanceof Set)) {
      ofCallers.delete(key);
      return;
    }
    own.delete(hash);
    const [first] = own;
    if (own.size === 1) ofCallers.set(key, first as string);
    if (own.size === KEPT_OF_ONE_CALLER) withMany.delete(key);
  }

  function add(hash: string, key: string): void {
    const own = ofCallers.get(key);
    if (own === undefined) {
      ofCallers.set(key, hash);
      return;
    }
    const all = own instanceof Set ? own.add(hash) : new Set([own, hash]);
    ofCallers.set(key, all);
    if (all.size > KEPT_OF_ONE_CALLER) withMany.add(key);
  }

  function isUseful(token: KnownToken, now: Instant): boolean {
    return token.kind === 'confirmed'
      ? elapsedMs(token.reviewedAt, now) < usefulForMs
      : !isPast(token.until, now);
  }

  /** Tokens are set when they are reviewed: behind the first one that is of use there is nothing older. */
  function forgetUseless(now: Instant): void {
    for (const [hash, token] of tokens) {
      if (isUseful(token, now)) return;
      remove(hash);
    }
  }

  function makeRoomFor(key: string): void {
    const own = ofCallers.get(key);
    const [many] = withMany;
    const giving = own instanceof Set && own.size >= KEPT_OF_ONE_CALLER ? key : many;
    const theirs = giving === undefined ? undefined : ofCallers.get(giving);
    const [oldest] = theirs instanceof Set ? theirs : tokens.keys();
    remove(oldest as string);
  }

  return {
    get: (hash) => tokens.get(hash),
    set(hash, token, now) {
      remove(hash);
      forgetUseless(now);
      const key = callerKey(token.caller);
      if (tokens.size >= MOST_KNOWN) makeRoomFor(key);
      add(hash, key);
      tokens.set(hash, token);
    },
    delete: remove,
    get size() {
      return tokens.size;
    },
  };
}
