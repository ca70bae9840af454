/** How often one caller may ask: a sidecar asks once in the life of a token, and a few times after a failure. */

import { callerKey, type ServiceAccountCaller } from '../callers/caller.ts';
import type { Clock } from '../clock.ts';

/**
 * Of one pod. Profiles may give it 32 credentials, each of which asks at the start, twice in the seconds after it, and then every 2.5 to
 * 5 s for as long as it has no token.
 */
export const OF_ONE_CALLER = { burst: 96, perSecond: 10 };

/** Callers that are kept; who is dropped may ask as often as at first again. */
export const MOST_KEPT = 20_000;

/** Of one request: a caller that has asked is paid for by then. */
const COST_MS = 1000 / OF_ONE_CALLER.perSecond;

export interface CallerRates {
  /** Callers that have asked and are not paid for. */
  readonly size: number;
  /** Whether the caller may be served now; if so, it is counted. */
  take(caller: ServiceAccountCaller): boolean;
}

export function createCallerRates(clock: Clock): CallerRates {
  /** Until when a caller is paid for, in monotonic ms. Who asked last comes last. */
  const paidAtMs = new Map<string, number>();

  /** Of those who asked longest ago: behind one that is not paid for, the others wait with it. */
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
      if (paidAtMs.size >= MOST_KEPT) paidAtMs.delete(oldest as string);
      paidAtMs.set(key, mayBeServed ? afterMs : beforeMs);
      return mayBeServed;
    },
  };
}
