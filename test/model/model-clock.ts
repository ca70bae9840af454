import type { Clock, Instant } from '../../src/platform/time/clock.ts';

interface Timer {
  readonly atMs: number;
  readonly callback: () => void;
}

/** A clock that the walk moves; each of its sides may jump by itself. Timers go by the monotonic side. */
export class ModelClock implements Clock {
  #monotonicMs = 1000;
  #wallMs = Date.parse('2030-01-01T00:00:00Z');
  readonly #timers = new Set<Timer>();

  now(): Instant {
    return { monotonicMs: this.#monotonicMs, wallMs: this.#wallMs };
  }

  monotonicMs(): number {
    return this.#monotonicMs;
  }

  after(delayMs: number, callback: () => void): () => void {
    const timer = { atMs: this.#monotonicMs + Math.max(0, delayMs), callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  get pendingTimers(): number {
    return this.#timers.size;
  }

  /** When the next timer is due, if that is within `ms`. */
  nextWithin(ms: number): number | undefined {
    let next = Number.POSITIVE_INFINITY;
    for (const { atMs } of this.#timers) next = Math.min(next, atMs);
    const inMs = Math.max(0, next - this.#monotonicMs);
    return inMs <= ms ? inMs : undefined;
  }

  jump(monotonicMs: number, wallMs: number): void {
    this.#monotonicMs += monotonicMs;
    this.#wallMs += wallMs;
  }

  /** Calls back all that is due, in its order. */
  fireDue(): void {
    const due = [...this.#timers].filter(({ atMs }) => atMs <= this.#monotonicMs);
    for (const timer of due.sort((a, b) => a.atMs - b.atMs)) {
      if (this.#timers.delete(timer)) timer.callback();
    }
  }
}
