import { type Clock, type Instant, systemClock } from '../../src/platform/time/clock.ts';

interface Timer {
  readonly atMs: number;
  readonly fire: () => void;
}

/** The system's clock, which a test may move on: for real sockets, and bounds of minutes. */
export class ShiftedClock implements Clock {
  #monotonicShiftMs = 0;
  #wallShiftMs = 0;
  #stoppedAt: Instant | undefined;
  readonly #timers = new Set<Timer>();

  now(): Instant {
    const { monotonicMs, wallMs } = this.#stoppedAt ?? systemClock.now();
    return { monotonicMs: monotonicMs + this.#monotonicShiftMs, wallMs: wallMs + this.#wallShiftMs };
  }

  monotonicMs(): number {
    return this.now().monotonicMs;
  }

  after(delayMs: number, callback: () => void): () => void {
    const cancelReal = systemClock.after(delayMs, () => timer.fire());
    const cancel = (): void => {
      cancelReal();
      this.#timers.delete(timer);
    };
    const fire = (): void => {
      cancel();
      callback();
    };
    const timer: Timer = { atMs: this.monotonicMs() + delayMs, fire };
    this.#timers.add(timer);
    return cancel;
  }

  /** Lets so much time pass in one moment, as for a process that was stopped: timers that are due fire before anything is read. */
  advance(ms: number): void {
    this.#monotonicShiftMs += ms;
    this.#wallShiftMs += ms;
    const nowMs = this.monotonicMs();
    for (const timer of [...this.#timers].filter(({ atMs }) => atMs <= nowMs)) timer.fire();
  }

  /** What is read from here on is this moment, and what it is moved on by, however long requests take. Timers fire as ever. */
  stop(): void {
    this.#stoppedAt = systemClock.now();
  }

  /** Suspends the machine for so long: its monotonic clock stands still. */
  suspend(ms: number): void {
    this.#wallShiftMs += ms;
  }

  /** Sets the wall clock back by so much. */
  stepBack(ms: number): void {
    this.#wallShiftMs -= ms;
  }
}
