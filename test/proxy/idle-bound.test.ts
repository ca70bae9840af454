import { beforeEach, describe, expect, it } from 'vitest';
import type { Clock } from '../../src/clock.ts';
import { IdleBound } from '../../src/proxy/idle-bound.ts';

/** A clock that stands still until it is moved. */
class HandClock implements Clock {
  #nowMs = 0;
  #timers = new Set<{ atMs: number; callback: () => void }>();

  now() {
    return { monotonicMs: this.#nowMs, wallMs: this.#nowMs };
  }

  after(delayMs: number, callback: () => void) {
    const timer = { atMs: this.#nowMs + delayMs, callback };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  get pending(): number {
    return this.#timers.size;
  }

  advance(ms: number): void {
    const untilMs = this.#nowMs + ms;
    for (;;) {
      const due = [...this.#timers].filter(({ atMs }) => atMs <= untilMs).sort((a, b) => a.atMs - b.atMs)[0];
      if (due === undefined) break;
      this.#timers.delete(due);
      this.#nowMs = due.atMs;
      due.callback();
    }
    this.#nowMs = untilMs;
  }
}

describe('an idle bound', () => {
  let clock: HandClock;
  let fired: number;
  let bound: IdleBound;

  beforeEach(() => {
    clock = new HandClock();
    fired = 0;
    bound = new IdleBound(clock, 100, () => {
      fired += 1;
    });
  });

  it('fires once after its time', () => {
    bound.start();
    clock.advance(99);
    expect(fired).toBe(0);
    clock.advance(1);
    expect(fired).toBe(1);
    clock.advance(1000);
    expect(fired).toBe(1);
  });

  it('counts from the last touch', () => {
    bound.start();
    clock.advance(90);
    bound.touch();
    clock.advance(99);
    expect(fired).toBe(0);
    clock.advance(1);
    expect(fired).toBe(1);
  });

  it('does not run before it is started, nor after it is stopped', () => {
    clock.advance(1000);
    bound.start();
    bound.stop();
    clock.advance(1000);
    expect(fired).toBe(0);
    expect(clock.pending).toBe(0);
  });

  it('started again counts anew, with one timer', () => {
    bound.start();
    clock.advance(60);
    bound.start();
    expect(clock.pending).toBe(1);
    clock.advance(99);
    expect(fired).toBe(0);
    clock.advance(1);
    expect(fired).toBe(1);
  });
});
