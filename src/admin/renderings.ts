/** Answers that take time to make, one after another: those who wait for the same one share it. */

import type { Clock } from '../platform/time/clock.ts';

/** After each, so many times as long as it took passes: making them takes a twentieth of the time. */
const REST_TIMES = 19;

/** After each, at most. Elapsed time is not always ours: a stopped process, a used-up CPU quota. */
export const MAX_REST_MS = 1000;

export class Renderings<Answer> {
  readonly #clock: Clock;
  /** By name; those that have not begun. */
  readonly #next = new Map<string, Promise<Answer>>();
  #last: Promise<unknown> = Promise.resolve();
  #restedAtMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Resolves with what `make` returns, or what it returned to another caller who waited for that name.
   * @param name one of a few: each may have one waiting.
   */
  share(name: string, make: () => Answer | Promise<Answer>): Promise<Answer> {
    const awaited = this.#next.get(name);
    if (awaited !== undefined) return awaited;
    const made = this.#inTurn(name, make);
    this.#next.set(name, made);
    this.#last = made.catch(() => undefined);
    return made;
  }

  async #inTurn(name: string, make: () => Answer | Promise<Answer>): Promise<Answer> {
    await this.#last;
    const restMs = this.#restedAtMs - this.#clock.monotonicMs();
    if (restMs > 0) await new Promise<void>((resolve) => void this.#clock.after(restMs, resolve));
    this.#next.delete(name);
    const begunAtMs = this.#clock.monotonicMs();
    try {
      return await make();
    } finally {
      const endedAtMs = this.#clock.monotonicMs();
      this.#restedAtMs = endedAtMs + Math.min(MAX_REST_MS, REST_TIMES * (endedAtMs - begunAtMs));
    }
  }
}
