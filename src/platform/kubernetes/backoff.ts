/** Waits between attempts, for watches and all else that must not end. */

import type { Clock } from '../time/clock.ts';

export interface BackoffOptions {
  readonly clock: Clock;
  /** From 0 up to, but not including, 1. */
  readonly random: () => number;
}

const FIRST_MS = 1000;
const MAX_MS = 30_000;

/** Full jitter: anything up to 1 s after the first failure, 2 s after the second, … 30 s. */
export function backoffMs(failures: number, random: () => number): number {
  return random() * Math.min(MAX_MS, FIRST_MS * 2 ** Math.max(0, failures - 1));
}

/** Resolves after `delayMs`, or at once when the signal aborts. */
export function pause(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = (): void => {
      cancel();
      signal.removeEventListener('abort', done);
      resolve();
    };
    const cancel = clock.after(delayMs, done);
    signal.addEventListener('abort', done, { once: true });
  });
}
