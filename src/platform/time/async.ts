import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from './clock.ts';

export { nextTurn };

/** @param steps done in one turn of the event loop. */
export function yieldEvery(steps: number): () => Promise<void> | undefined {
  let done = 0;
  return () => (++done % steps === 0 ? nextTurn() : undefined);
}

/** The promise goes on, and the caller must watch its rejection. */
export function within<T>(ms: number, promise: Promise<T>, clock: Clock): Promise<T | 'late'> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(ms, () => resolve('late'));
    promise.then(resolve, reject).finally(cancel);
  });
}

export class SingleFlight<T> {
  readonly #underWay = new Map<string, Promise<T>>();

  get(key: string): Promise<T> | undefined {
    return this.#underWay.get(key);
  }

  /** @param begin called if nothing is under way. */
  run(key: string, begin: () => Promise<T>): Promise<T> {
    const same = this.#underWay.get(key);
    if (same !== undefined) return same;
    const begun = begin().finally(() => this.#underWay.delete(key));
    this.#underWay.set(key, begun);
    return begun;
  }
}

export interface BackoffOptions {
  readonly clock: Clock;
  /** From 0 up to, but not including, 1. */
  readonly random: () => number;
}

interface Doubling {
  readonly firstMs: number;
  readonly maxMs: number;
}

/** @param failures 0 gives the first wait. */
export function doublingMs(failures: number, { firstMs, maxMs }: Doubling): number {
  return Math.min(maxMs, firstMs * 2 ** failures);
}

const BACKOFF: Doubling = { firstMs: 1000, maxMs: 30_000 };

/** Up to 1 s after the first failure, 2 s after the second, … 30 s. */
export function backoffMs(failures: number, random: () => number): number {
  return random() * doublingMs(Math.max(0, failures - 1), BACKOFF);
}

export function sleep(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
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
