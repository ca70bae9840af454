/**
 * Remembers tokens by their hash for as long as that is useful. The total is bounded: a caller with many tokens makes
 * room for the others.
 */

import { elapsedMs, type Instant, isPast } from '../platform/time/clock.ts';
import { callerKey, type ServiceAccountCaller } from './caller.ts';

export type KnownToken = ConfirmedToken | DeniedToken;

export interface ConfirmedToken {
  readonly kind: 'confirmed';
  readonly caller: ServiceAccountCaller;
  readonly expiresAt: Instant;
  /** When the API server last confirmed it. */
  readonly reviewedAt: Instant;
}

interface DeniedToken {
  readonly kind: 'denied';
  readonly caller: ServiceAccountCaller;
  readonly until: Instant;
}

interface KnownTokens {
  get(hash: string): KnownToken | undefined;
  /**
   * Forgets useless tokens. If there is still no room, the oldest token of a caller with many goes, or else the oldest
   * of all.
   */
  set(hash: string, token: KnownToken, now: Instant): void;
  delete(hash: string): void;
  readonly size: number;
}

/** A few hundred bytes each. */
const MAX_KNOWN = 20_000;

/**
 * A caller with this many tokens makes room for its own next one, and with more for others' too; with no more it gives
 * way to others only if no caller has more. The kubelet replaces a token once in its life: a pod has the old and the
 * new one, of each volume. Tokens bound to no pod may have more holders, who all count as one caller: its tokens beyond
 * this number stay while nobody else needs the room.
 */
const KEPT_OF_ONE_CALLER = 8;

/** @param usefulForMs how long a token is remembered after its last review. */
export function createKnownTokens(usefulForMs: number): KnownTokens {
  /** In order of being set. */
  const tokens = new Map<string, KnownToken>();
  /**
   * A caller's only token, the usual case, or all in order of being set: a set of one would take as much memory as all
   * else kept of it.
   */
  const ofCallers = new Map<string, string | Set<string>>();
  /** Callers with more tokens than are kept for them; the longest so comes first. */
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

  /** Tokens are set when reviewed: after the first useful one there is nothing older. */
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
      if (tokens.size >= MAX_KNOWN) makeRoomFor(key);
      add(hash, key);
      tokens.set(hash, token);
    },
    delete: remove,
    get size() {
      return tokens.size;
    },
  };
}
