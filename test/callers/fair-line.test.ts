import { expect, it } from 'vitest';
import { createFairLine } from '../../src/callers/fair-line.ts';
import { ManualClock, settle } from '../support/manual-clock.ts';

const LIMITS = { atOnce: 1, mostWaiting: 6, mostWaitingOfOne: 4, patienceMs: 1000 };

function start(limits = LIMITS) {
  const clock = new ManualClock();
  const line = createFairLine(clock, limits);
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const enter = (of: string, name = of) =>
    line.enter(of).then((end) => {
      begun.push(end === undefined ? `${name} left` : name);
      if (end !== undefined) ends.push(end);
    });
  const next = async () => {
    ends.shift()?.();
    await settle();
  };
  return { clock, line, begun, enter, next };
}

it('takes turns between those it is for, and keeps the order of each', async () => {
  const { begun, enter, next } = start();
  for (const name of ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1']) void enter(name[0] as string, name);
  for (let n = 0; n < 7; n++) await next();
  expect(begun).toEqual(['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4']);
});

it('turns away what has no room, of one and of all', async () => {
  const { begun, enter, line } = start();
  for (let n = 0; n < 6; n++) void enter('a');
  await settle();
  expect(begun).toEqual(['a', 'a left']);
  for (let n = 0; n < 3; n++) void enter('b');
  await settle();
  expect(begun).toEqual(['a', 'a left', 'b left']);
  expect(line.waiting).toBe(6);
});

it('lets nobody wait longer than its patience, and leaves no place behind', async () => {
  const { clock, begun, enter, line, next } = start();
  void enter('a');
  void enter('b');
  await clock.advance(1000);
  expect(begun).toEqual(['a', 'b left']);
  expect(line.waiting).toBe(0);
  await next();
  void enter('c');
  await settle();
  expect(begun).toEqual(['a', 'b left', 'c']);
  expect(clock.pendingTimers).toBe(0);
});

it('gives a place back once, however often its work says that it has ended', async () => {
  const { clock } = start();
  const line = createFairLine(clock, LIMITS);
  const end = await line.enter('a');
  end?.();
  end?.();
  await line.enter('a');
  const second = line.enter('a');
  await clock.advance(1000);
  expect(await second).toBeUndefined();
});
