import { beforeEach, describe, expect, it } from 'vitest';
import { Deadline } from '../../../src/proxy/io/deadline.ts';
import { ManualClock } from '../../support/manual-clock.ts';

describe('a deadline', () => {
  let clock: ManualClock;
  let passed: number;
  let deadline: Deadline;

  beforeEach(() => {
    clock = new ManualClock();
    passed = 0;
    deadline = new Deadline(clock, () => {
      passed += 1;
    });
  });

  function setIn(ms: number): void {
    deadline.set(clock.now().monotonicMs + ms);
  }

  it('passes once, at its moment', async () => {
    setIn(100);
    await clock.advance(99);
    expect(passed).toBe(0);
    await clock.advance(1);
    expect(passed).toBe(1);
    await clock.advance(1000);
    expect(passed).toBe(1);
  });

  it('when postponed, passes later with one timer', async () => {
    setIn(100);
    await clock.advance(90);
    setIn(100);
    expect(clock.pendingTimers).toBe(1);
    await clock.advance(99);
    expect(passed).toBe(0);
    await clock.advance(1);
    expect(passed).toBe(1);
  });

  it('when advanced, passes sooner with one timer', async () => {
    setIn(100);
    setIn(10);
    expect(clock.pendingTimers).toBe(1);
    await clock.advance(10);
    expect(passed).toBe(1);
    await clock.advance(1000);
    expect(passed).toBe(1);
  });

  it('when cleared, does not pass and may be set again', async () => {
    setIn(100);
    deadline.clear();
    await clock.advance(1000);
    expect(passed).toBe(0);
    setIn(50);
    await clock.advance(50);
    expect(passed).toBe(1);
  });

  it('may be set again while it passes', async () => {
    const again = new Deadline(clock, () => {
      passed += 1;
      if (passed < 3) again.set(clock.now().monotonicMs + 10);
    });
    again.set(clock.now().monotonicMs + 10);
    await clock.advance(100);
    expect(passed).toBe(3);
  });

  it('leaves no timer when disposed', async () => {
    setIn(100);
    deadline.dispose();
    expect(clock.pendingTimers).toBe(0);
    await clock.advance(1000);
    expect(passed).toBe(0);
  });
});
