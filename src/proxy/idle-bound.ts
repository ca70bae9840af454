import type { Clock } from '../clock.ts';

/**
 * Calls back when nothing has moved for `limitMs`. A touch costs one look at the clock; the timer is moved only
 * when it fires, so that a fast transfer does not pay for its bound.
 */
export class IdleBound {
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #onIdle: () => void;
  #lastMs = 0;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, limitMs: number, onIdle: () => void) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#onIdle = onIdle;
  }

  /** Counts from now. */
  start(): void {
    this.touch();
    if (this.#cancel === undefined) this.#arm(this.#limitMs);
  }

  touch(): void {
    this.#lastMs = this.#clock.now().monotonicMs;
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #arm(delayMs: number): void {
    this.#cancel = this.#clock.after(delayMs, () => {
      this.#cancel = undefined;
      const leftMs = this.#lastMs + this.#limitMs - this.#clock.now().monotonicMs;
      if (leftMs > 0) this.#arm(leftMs);
      else this.#onIdle();
    });
  }
}
