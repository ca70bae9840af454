/** Everything that waits takes a Clock, so that tests move time by hand. */

/** Either clock can be wrong. */
export interface Instant {
  /** Never steps; its zero is arbitrary. */
  readonly monotonicMs: number;
  /** An administrator or a resumed VM may step it. */
  readonly wallMs: number;
}

export interface Clock {
  now(): Instant;
  monotonicMs(): number;
  /** Does not keep the process alive. Returns the cancel function. */
  after(delayMs: number, callback: () => void): () => void;
}

/** Node fires longer delays at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => ({ monotonicMs: performance.now(), wallMs: Date.now() }),
  monotonicMs: () => performance.now(),
  after(delayMs, callback) {
    const timer = setTimeout(callback, Math.min(Math.max(delayMs, 0), MAX_TIMER_MS));
    timer.unref();
    return () => clearTimeout(timer);
  },
};

export function later(instant: Instant, durationMs: number): Instant {
  return { monotonicMs: instant.monotonicMs + durationMs, wallMs: instant.wallMs + durationMs };
}

/** By either clock: one may stand still, the other be stepped. */
export function hasPassed(deadline: Instant, now: Instant): boolean {
  return now.monotonicMs >= deadline.monotonicMs || now.wallMs >= deadline.wallMs;
}

/** By whichever clock says more. */
export function elapsedMs(instant: Instant, now: Instant): number {
  return Math.max(now.monotonicMs - instant.monotonicMs, now.wallMs - instant.wallMs);
}

/** By whichever clock reaches it first; never negative. */
export function remainingMs(deadline: Instant, now: Instant): number {
  return Math.max(0, Math.min(deadline.monotonicMs - now.monotonicMs, deadline.wallMs - now.wallMs));
}
