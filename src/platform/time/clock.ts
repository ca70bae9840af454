/**
 * Time as an argument. Everything that waits or expires takes a Clock, so that tests move time by hand.
 */

/** A moment on both clocks, because either alone can lie: see `isPast`. */
export interface Instant {
  /** Milliseconds on a clock that never steps; its zero is arbitrary. */
  readonly monotonicMs: number;
  /** Milliseconds since the Unix epoch; may be stepped by an administrator or a resumed VM. */
  readonly wallMs: number;
}

export interface Clock {
  now(): Instant;
  /** `now().monotonicMs` alone, for the path of every request. */
  monotonicMs(): number;
  /** Calls back once, `delayMs` from now at the earliest. Does not keep the process alive. Returns the cancel function. */
  after(delayMs: number, callback: () => void): () => void;
}

/** Longer delays overflow Node's timers and would fire at once. */
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

/** The instant `durationMs` after `instant`. */
export function later(instant: Instant, durationMs: number): Instant {
  return { monotonicMs: instant.monotonicMs + durationMs, wallMs: instant.wallMs + durationMs };
}

/**
 * Whether `deadline` has passed by either clock. A suspended machine's monotonic clock stands still, and a stepped wall
 * clock jumps: a token past its end by one of them counts as expired.
 */
export function isPast(deadline: Instant, now: Instant): boolean {
  return now.monotonicMs >= deadline.monotonicMs || now.wallMs >= deadline.wallMs;
}

/** Milliseconds since `instant`, by whichever clock says more; see `isPast`. */
export function elapsedMs(instant: Instant, now: Instant): number {
  return Math.max(now.monotonicMs - instant.monotonicMs, now.wallMs - instant.wallMs);
}

/** Milliseconds until `deadline` by whichever clock reaches it first; never negative. */
export function remainingMs(deadline: Instant, now: Instant): number {
  return Math.max(0, Math.min(deadline.monotonicMs - now.monotonicMs, deadline.wallMs - now.wallMs));
}
