import type { Clock } from './clock.ts';

/** How much of something may be done: `burst` at once, and `perSecond` over time. */
export interface Allowance {
  /** Whether one more may be done now; a yes is counted. */
  take(): boolean;
}

export function createAllowance(clock: Clock, burst: number, perSecond: number): Allowance {
  let left = burst;
  let countedAtMs = clock.monotonicMs();
  return {
    take() {
      const nowMs = clock.monotonicMs();
      left = Math.min(burst, left + ((nowMs - countedAtMs) / 1000) * perSecond);
      countedAtMs = nowMs;
      if (left < 1) return false;
      left--;
      return true;
    },
  };
}
