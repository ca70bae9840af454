import type { Clock } from '../../platform/time/clock.ts';

/** A timer this late means that the process was stopped or busy. */
const LATE_MS = 10;

/**
 * A deadline that is moved far more often than it passes. Moving it later only stores a number, so that
 * requests on a warm connection set no timer.
 */
export class Deadline {
  readonly #clock: Clock;
  readonly #onPassed: () => void;
  #atMs = Number.POSITIVE_INFINITY;
  #timerAtMs = Number.POSITIVE_INFINITY;
  #cancelTimer: (() => void) | undefined;

  constructor(clock: Clock, onPassed: () => void) {
    this.#clock = clock;
    this.#onPassed = onPassed;
  }

  /** @param atMs on the clock's monotonic side. */
  set(atMs: number): void {
    this.#atMs = atMs;
    if (atMs < this.#timerAtMs) this.#startTimer(atMs, this.#clock.monotonicMs());
  }

  clear(): void {
    this.#atMs = Number.POSITIVE_INFINITY;
  }

  dispose(): void {
    this.clear();
    this.#cancelTimer?.();
    this.#timerAtMs = Number.POSITIVE_INFINITY;
  }

  #startTimer(atMs: number, nowMs: number): void {
    this.#cancelTimer?.();
    this.#timerAtMs = atMs;
    this.#cancelTimer = this.#clock.after(atMs - nowMs, () => this.#look());
  }

  #look(): void {
    const dueMs = this.#timerAtMs;
    this.#timerAtMs = Number.POSITIVE_INFINITY;
    const nowMs = this.#clock.monotonicMs();
    // Timers run before sockets: what peers have sent in time is read first.
    if (nowMs - dueMs > LATE_MS) afterPoll(() => this.#decide());
    else this.#decide();
  }

  #decide(): void {
    if (this.#atMs === Number.POSITIVE_INFINITY) return;
    const nowMs = this.#clock.monotonicMs();
    if (nowMs < this.#atMs) {
      if (this.#atMs < this.#timerAtMs) this.#startTimer(this.#atMs, nowMs);
      return;
    }
    this.clear();
    this.#onPassed();
  }
}

/**
 * The event loop polls sockets between two immediates, so that a delayed process first reads what it missed.
 */
export function afterPoll(callback: () => void): void {
  setImmediate(() => setImmediate(callback));
}
