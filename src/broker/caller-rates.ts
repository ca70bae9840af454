/** How often one caller may ask: a sidecar asks once in a token's life, and a few times after a failure. */

import { callerKey, type ServiceAccountCaller } from '../callers/caller.ts';
import type { Clock } from '../platform/time/clock.ts';

/**
 * For one pod. Profiles may give it 32 credentials, each of which asks at the start, twice in the seconds after it, and
 * then every 2.5 to 5 s while it has no token.
 */
export const OF_ONE_CALLER = { burst: 96, perSecond: 10 };

/** Callers that are remembered; a forgotten caller starts with a full allowance. */
const MAX_KEPT = 20_000;

/** The time that one request uses up. */
const COST_MS = 1000 / OF_ONE_CALLER.perSecond;

interface CallerRates {
  /** Callers whose allowance is not full. */
  readonly size: number;
  /** Whether the caller may be served now; a yes is counted. */
  take(caller: ServiceAccountCaller): boolean;
}

export function createCallerRates(clock: Clock): CallerRates {
  /** When a caller's allowance is full again, in monotonic ms. The latest asker comes last. */
  const paidAtMs = new Map<string, number>();

  /** Drops the oldest callers with a full allowance; one that is not full keeps those behind it. */
  function forgetPaid(nowMs: number): void {
    for (const [key, atMs] of paidAtMs) {
      if (atMs > nowMs) return;
      paidAtMs.delete(key);
    }
  }

  return {
    get size() {
      return paidAtMs.size;
    },
    take(caller) {
      const nowMs = clock.monotonicMs();
      forgetPaid(nowMs);
      const key = callerKey(caller);
      const beforeMs = Math.max(nowMs, paidAtMs.get(key) ?? 0);
      const afterMs = beforeMs + COST_MS;
      const mayBeServed = afterMs - nowMs <= OF_ONE_CALLER.burst * COST_MS;
      paidAtMs.delete(key);
      const [oldest] = paidAtMs.keys();
      if (paidAtMs.size >= MAX_KEPT) paidAtMs.delete(oldest as string);
      paidAtMs.set(key, mayBeServed ? afterMs : beforeMs);
      return mayBeServed;
    },
  };
}
