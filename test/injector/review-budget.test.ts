import { expect, it, vi } from 'vitest';
import { createReviewBudget, type Reservation } from '../../src/injector/review-budget.ts';
import { ManualClock } from '../support/manual-clock.ts';

const MIB = 2 ** 20;
const never = new AbortController().signal;

/** Starts to reserve; `has` says whether there was room. */
function claimOn(budget: ReturnType<typeof createReviewBudget>) {
  return (address: string, mib: number, signal = never) => {
    const giveWay = vi.fn();
    let reservation: Reservation | undefined;
    const reserved = budget.reserve(address, mib * MIB, signal, giveWay).then((got) => {
      reservation = got;
      return got;
    });
    reserved.catch(() => undefined);
    const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
    return {
      reserved,
      giveWay,
      async has(): Promise<boolean> {
        await settle();
        return reservation !== undefined;
      },
    };
  };
}

it('is never more than its total, and goes on when something is given back', async () => {
  const claim = claimOn(createReviewBudget(new ManualClock()));
  const held = ['a', 'b', 'c', 'd'].map((address) => claim(address, 4));
  const fifth = claim('e', 4);
  expect(await Promise.all(held.map(({ has }) => has()))).toEqual([true, true, true, true]);
  expect(await fifth.has()).toBe(false);
  const first = await held[0]?.reserved;
  first?.release();
  first?.release();
  expect(await fifth.has()).toBe(true);
  expect(await claim('f', 4).has()).toBe(false);
});

it('lets no address have more than half', async () => {
  const claim = claimOn(createReviewBudget(new ManualClock()));
  const held = [claim('a', 4), claim('a', 4), claim('a', 4)];
  expect(await Promise.all(held.map(({ has }) => has()))).toEqual([true, true, false]);
  expect(await claim('b', 4).has()).toBe(true);
});

it('takes unfinished reviews back from the address with most, for one with less', async () => {
  const claim = claimOn(createReviewBudget(new ManualClock()));
  const held = [claim('a', 4), claim('a', 4), claim('b', 4), claim('c', 4)];
  await Promise.all(held.map(({ reserved }) => reserved));
  const small = claim('d', 0.1);
  expect(held.map(({ giveWay }) => giveWay.mock.calls.length)).toEqual([1, 0, 0, 0]);
  (await held[0]?.reserved)?.release();
  expect(await small.has()).toBe(true);
});

it('takes nothing back from an address with no more, nor a whole review', async () => {
  const claim = claimOn(createReviewBudget(new ManualClock()));
  const held = ['a', 'b', 'c', 'd'].map((address) => claim(address, 4));
  for (const { reserved } of held) (await reserved).arrived();
  const small = claim('e', 0.1);
  const large = claim('f', 4);
  expect(await small.has()).toBe(false);
  expect(await large.has()).toBe(false);
  for (const { giveWay } of held) expect(giveWay).not.toHaveBeenCalled();
});

it('forgets a caller that leaves while it waits', async () => {
  const claim = claimOn(createReviewBudget(new ManualClock()));
  const held = ['a', 'b', 'c', 'd'].map((address) => claim(address, 4));
  const gone = new AbortController();
  const waiting = claim('e', 4, gone.signal);
  gone.abort(new Error('gone'));
  await expect(waiting.reserved).rejects.toThrow('gone');
  (await held[0]?.reserved)?.release();
  expect(await claim('f', 4).has()).toBe(true);
});

it('gives nothing to a caller that has left before asking', async () => {
  const claim = claimOn(createReviewBudget(new ManualClock()));
  const gone = claim('a', 4, AbortSignal.abort(new Error('gone')));
  await expect(gone.reserved).rejects.toThrow('gone');
  const others = ['b', 'c', 'd', 'e'].map((address) => claim(address, 4));
  expect(await Promise.all(others.map(({ has }) => has()))).toEqual([true, true, true, true]);
});

it('asks no other to make room if enough is being freed already', async () => {
  const claim = claimOn(createReviewBudget(new ManualClock()));
  const held = [claim('a', 4), claim('a', 4), claim('b', 4), claim('c', 4)];
  await Promise.all(held.map(({ reserved }) => reserved));
  const [first, second] = [claim('d', 1), claim('e', 1)];
  expect([await first.has(), await second.has()]).toEqual([false, false]);
  expect(held.map(({ giveWay }) => giveWay.mock.calls.length)).toEqual([1, 0, 0, 0]);
  (await held[0]?.reserved)?.release();
  expect([await first.has(), await second.has()]).toEqual([true, true]);
});
