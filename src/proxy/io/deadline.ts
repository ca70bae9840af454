import type { Clock } from '../../platform/time/clock.ts';

/** Later, the process was stopped or busy. */
const LATE_MS = 10;

/** Moving it later stores only a number, so that requests on warm connections set no timer. */
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

  /** @param atMs on the monotonic clock. */
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
    // Timers run before sockets: first read what came in time.
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

/** Sockets are polled between two immediates. A delayed process first reads what it missed. */
export function afterPoll(callback: () => void): void {
  setImmediate(() => setImmediate(callback));
}
