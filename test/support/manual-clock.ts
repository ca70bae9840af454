import type { Clock, Instant } from '../../src/platform/time/clock.ts';

interface Timer {
  readonly atMs: number;
  readonly callback: () => void;
}

/** A clock that stands still until it is moved. Its wall can be stepped apart from its monotonic side. */
export class ManualClock implements Clock {
  #monotonicMs = 1000;
  #wallMs = Date.parse('2030-01-01T00:00:00Z');
  readonly #timers = new Set<Timer>();
  readonly #quiet: () => Promise<void>;

  /** @param quiet resolves when all that the present moment can cause has happened. */
  constructor(quiet: () => Promise<void> = settle) {
    this.#quiet = quiet;
  }

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

  /** Moves both clocks on, firing each timer at its moment and letting what it started settle. */
  async advance(ms: number): Promise<void> {
    const endMs = this.#monotonicMs + ms;
    for (;;) {
      await this.#quiet();
      const next = [...this.#timers].sort((a, b) => a.atMs - b.atMs)[0];
      if (next === undefined || next.atMs > endMs) break;
      this.#timers.delete(next);
      this.#move(Math.max(0, next.atMs - this.#monotonicMs));
      next.callback();
    }
    this.#move(endMs - this.#monotonicMs);
    await this.#quiet();
  }

  /** Steps the wall clock alone, as an administrator or a time server does. */
  stepWall(ms: number): void {
    this.#wallMs += ms;
  }

  /** How many timers are set: a leak shows here. */
  get pendingTimers(): number {
    return this.#timers.size;
  }

  #move(ms: number): void {
    this.#monotonicMs += ms;
    this.#wallMs += ms;
  }
}

/** What the process asks of the file system, as Node names its resources. */
const READING = /^(FSReq|CloseReq)/;

/** Turns of the event loop: a promise starts the next step of what it does in the turn after. */
const QUIET_TURNS = 3;

/** Lets every promise callback that is due run, and what is read or written end: however long a busy machine takes. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < QUIET_TURNS; turn++) {
    if (process.getActiveResourcesInfo().some((kind) => READING.test(kind))) turn = 0;
    await new Promise((resolve) => setImmediate(resolve));
  }
}
