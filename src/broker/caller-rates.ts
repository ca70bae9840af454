/** How often one caller may ask: a sidecar asks once in the life of a token, and a few times after a failure. */

import { type Allowance, createAllowance } from '../allowance.ts';
import { callerKey, type ServiceAccountCaller } from '../callers/caller.ts';
import type { Clock } from '../clock.ts';

/**
 * Of one pod. Profiles may give it 32 credentials, each of which asks at the start, twice in the seconds after it, and then every 2.5 to
 * 5 s for as long as it has no token.
 */
export const OF_ONE_CALLER = { burst: 96, perSecond: 10 };

/** Allowances that are kept; of one that is dropped the caller has a whole one again. */
export const MOST_KEPT = 20_000;

export interface CallerRates {
  /** Allowances that are kept now. */
  readonly size: number;
  /** Whether the caller may be served now; if so, it is counted. */
  take(caller: ServiceAccountCaller): boolean;
}

export function createCallerRates(clock: Clock): CallerRates {
  /** The one that asked last comes last. */
  const kept = new Map<string, Allowance>();
  return {
    get size() {
      return kept.size;
    },
    take(caller) {
      const key = callerKey(caller);
      const allowance = kept.get(key) ?? createAllowance(clock, OF_ONE_CALLER.burst, OF_ONE_CALLER.perSecond);
      kept.delete(key);
      const [oldest] = kept.keys();
      if (kept.size >= MOST_KEPT) kept.delete(oldest as string);
      kept.set(key, allowance);
      return allowance.take();
    },
  };
}
