import type { Clock } from '../platform/time/clock.ts';

/**
 * When a wrong secret is answered: at a fixed time after it came, or whole steps later, so that the time reveals
 * nothing of whether the client exists or how its secret is kept.
 */
interface WrongAnswerTime {
  /** Resolves when a request that came at `startedAtMs` (monotonic) may be answered. */
  wait(startedAtMs: number): Promise<void>;
  /** A check with scrypt took this long, waiting included: the fixed time grows to cover it, within bounds. */
  took(durationMs: number): void;
}

/** Several derivations at the default cost. */
const STEP_MS = 1000;
/** Most callers give up after ten seconds. */
const MAX_SOONEST_MS = 5000;

export function createWrongAnswerTime(clock: Clock): WrongAnswerTime {
  let soonestMs = STEP_MS;
  return {
    async wait(startedAtMs) {
      const sinceMs = clock.monotonicMs() - startedAtMs;
      const answerMs = Math.max(soonestMs, wholeSteps(sinceMs));
      await new Promise<void>((resolve) => clock.after(answerMs - sinceMs, resolve));
    },
    took(durationMs) {
      soonestMs = Math.max(soonestMs, Math.min(wholeSteps(durationMs), MAX_SOONEST_MS));
    },
  };
}

function wholeSteps(ms: number): number {
  return Math.ceil(ms / STEP_MS) * STEP_MS;
}
