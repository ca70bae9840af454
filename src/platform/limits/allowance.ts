import type { Clock } from '../time/clock.ts';

/** How much of something may be done: `burst` at once, and `perSecond` over time. */
export interface Allowance {
  /** Whether one more may be done now; a yes is counted. */
  take(): boolean;
  /** In how many ms one more may be done; zero if now. */
  waitMs(): number;
}

export function createAllowance(clock: Clock, burst: number, perSecond: number): Allowance {
  let left = burst;
  let countedAtMs = clock.monotonicMs();
  function waitMs(): number {
    const nowMs = clock.monotonicMs();
    left = Math.min(burst, left + ((nowMs - countedAtMs) / 1000) * perSecond);
    countedAtMs = nowMs;
    return left < 1 ? ((1 - left) / perSecond) * 1000 : 0;
  }
  return {
    waitMs,
    take() {
      if (waitMs() > 0) return false;
      left--;
      return true;
    },
  };
}
