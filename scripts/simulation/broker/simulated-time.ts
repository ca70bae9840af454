/** A clock for code that is written with promises: what is due is called in order, and then all that it causes happens. */

import type { Clock, Instant } from '../../../src/platform/time/clock.ts';
import { instant } from '../fleet.ts';

interface Due {
  readonly atMs: number;
  /** Undefined of what was cancelled. */
  callback: (() => void) | undefined;
}

/** Promises that wait for promises: none of the engine's chains needs more. */
const TURNS = 2;

/**
 * Callbacks of one millisecond are called before the promises that they settle are followed, so that a hundred thousand
 * pods can be run: what follows from one of them happens at most so much later than it would.
 */
export class SimulatedTime implements Clock {
  /** By the millisecond they are due in. */
  readonly #due = new Map<number, Due[]>();
  #nowMs = 0;

  now(): Instant {
    return instant(this.#nowMs);
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  after(delayMs: number, callback: () => void): () => void {
    const due: Due = { atMs: this.#nowMs + Math.max(0, delayMs), callback };
    const millisecond = Math.floor(due.atMs);
    const others = this.#due.get(millisecond);
    if (others === undefined) this.#due.set(millisecond, [due]);
    else others.push(due);
    return () => {
      due.callback = undefined;
    };
  }

  /** Calls what is due before `endMs`. */
  async run(endMs: number): Promise<void> {
    for (let millisecond = Math.floor(this.#nowMs); millisecond < endMs; millisecond++) {
      // What is called, and what follows from it, may have more to be done in this millisecond.
      for (let due = this.#take(millisecond); due !== undefined; due = this.#take(millisecond)) {
        for (const { atMs, callback } of due) {
          if (callback === undefined) continue;
          this.#nowMs = Math.max(this.#nowMs, atMs);
          callback();
        }
        for (let turn = 0; turn < TURNS; turn++) await new Promise((resolve) => setImmediate(resolve));
      }
    }
  }

  #take(millisecond: number): readonly Due[] | undefined {
    const due = this.#due.get(millisecond);
    this.#due.delete(millisecond);
    return due?.sort((a, b) => a.atMs - b.atMs);
  }
}
