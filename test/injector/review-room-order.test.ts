/** Whose review comes next, and who gives way. */

import { expect, it, vi } from 'vitest';
import { createReviewBudget } from '../../src/injector/review-budget.ts';
import { ManualClock } from '../support/manual-clock.ts';

const MIB = 2 ** 20;
const never = new AbortController().signal;
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Asks in a row for room; `began` says who had it, in which order. */
function row() {
  const budget = createReviewBudget(new ManualClock());
  const began: string[] = [];
  return {
    began,
    ask(address: string, bytes: number, name = address) {
      const giveWay = vi.fn();
      const reserved = budget.reserve(address, bytes, never, giveWay).then((reservation) => {
        began.push(name);
        return reservation;
      });
      return { reserved, giveWay };
    },
  };
}

it('the address that would have least begins first, however late it came', async () => {
  const { ask, began } = row();
  const held = ['a', 'b', 'c', 'd'].map((address) => ask(address, 4 * MIB));
  for (const { reserved } of held) (await reserved).arrived();
  began.length = 0;
  ask('b', 2 * MIB, 'has four, wants two');
  ask('e', 4 * MIB, 'has none, wants four');
  ask('f', 3 * MIB, 'has none, wants three');
  (await held[0]?.reserved)?.release();
  await settled();
  expect(began).toEqual(['has none, wants three']);
  (await held[2]?.reserved)?.release();
  await settled();
  expect(began).toEqual(['has none, wants three', 'has none, wants four']);
});

it('an address may use again all that it gave back', async () => {
  const { ask } = row();
  for (let turn = 0; turn < 3; turn++) {
    const both = await Promise.all([ask('a', 4 * MIB).reserved, ask('a', 4 * MIB).reserved]);
    for (const { release } of both) release();
  }
});

it('an address may have half of all and no byte more', async () => {
  const { ask, began } = row();
  await ask('a', 4 * MIB).reserved;
  await ask('a', 4 * MIB - 64 * 1024).reserved;
  await ask('a', 64 * 1024).reserved;
  ask('a', 1, 'more');
  await settled();
  expect(began).not.toContain('more');
});

it('a review is counted as large as its answer may be, however small it is', async () => {
  const { ask, began } = row();
  for (let count = 0; count < 128; count++) await ask('a', 1).reserved;
  ask('a', 1, 'more');
  await settled();
  expect(began).not.toContain('more');
});

it('the oldest reviews of the address with most make room, each once, until there is room', async () => {
  const { ask, began } = row();
  const [first, second, ...others] = ['a', 'a', 'b', 'c'].map((address) => ask(address, 4 * MIB));
  await Promise.all([first, second, ...others].map((asked) => asked?.reserved));
  ask('d', 3 * MIB);
  ask('e', 3 * MIB);
  await settled();
  expect(first?.giveWay).toHaveBeenCalledTimes(1);
  (await first?.reserved)?.release();
  await settled();
  expect(began).toContain('d');
  expect(first?.giveWay).toHaveBeenCalledTimes(1);
  for (const { giveWay } of others) expect(giveWay.mock.calls.length).toBeLessThanOrEqual(1);
});

it('an ended review makes no room, nor does any for an address that would then have as much', async () => {
  const { ask } = row();
  const [gone, ...held] = ['a', 'a', 'b', 'c'].map((address) => ask(address, 4 * MIB));
  for (const { reserved } of held) await reserved;
  (await gone?.reserved)?.release();
  const last = ask('d', 4 * MIB);
  await last.reserved;
  ask('e', 4 * MIB);
  await settled();
  for (const asked of [gone, last, ...held]) expect(asked?.giveWay).not.toHaveBeenCalled();
});

it('a review that has its room is no longer listened to', async () => {
  const budget = createReviewBudget(new ManualClock());
  const caller = new AbortController();
  const reservation = await budget.reserve('a', 4 * MIB, caller.signal, () => undefined);
  const removed = vi.spyOn(caller.signal, 'removeEventListener');
  caller.abort(new Error('gone'));
  expect(removed).not.toHaveBeenCalled();
  reservation.release();
  await Promise.all(
    ['b', 'c', 'd', 'e'].map((address) => budget.reserve(address, 4 * MIB, never, () => undefined)),
  );
});

it('the address with most makes room, also if it came later', async () => {
  const { ask } = row();
  const held = ['b', 'a', 'a', 'c'].map((address) => ask(address, 4 * MIB));
  await Promise.all(held.map(({ reserved }) => reserved));
  ask('d', 1);
  await settled();
  expect(held.map(({ giveWay }) => giveWay.mock.calls.length)).toEqual([0, 1, 0, 0]);
});

it('a waiting review asks no others to make room while the asked ones are ending', async () => {
  const { ask, began } = row();
  const uploads = Array.from({ length: 8 }, () => ask('a', MIB));
  const small = await Promise.all(Array.from({ length: 127 }, (_, index) => ask(`o${index}`, 1).reserved));
  ask('c', MIB);
  await settled();
  for (const { release } of small.slice(0, 6)) release();
  expect(uploads.map(({ giveWay }) => giveWay.mock.calls.length)).toEqual([1, 0, 0, 0, 0, 0, 0, 0]);
  (await uploads[0]?.reserved)?.release();
  await settled();
  expect(began).toContain('c');
});

it('reviews that were asked to make room no longer count for their address', async () => {
  const { ask } = row();
  const held = ['a', 'a', 'b', 'b'].map((address) => ask(address, 4 * MIB));
  await Promise.all(held.map(({ reserved }) => reserved));
  ask('c', 3 * MIB);
  await settled();
  ask('d', 2 * MIB);
  await settled();
  expect(held.map(({ giveWay }) => giveWay.mock.calls.length)).toEqual([1, 0, 0, 0]);
  (await held[0]?.reserved)?.release();
  await settled();
  // `a` has 4 MiB left and `b` 8.
  ask('e', 3 * MIB);
  await settled();
  expect(held.map(({ giveWay }) => giveWay.mock.calls.length)).toEqual([1, 0, 1, 0]);
});
