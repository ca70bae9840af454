/** What is kept of the room for reviews once they are answered: the answer's part, for as long as nobody reads it. */

import { expect, it } from 'vitest';
import { createReviewBudget } from '../../src/injector/review-budget.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { answered, head, JSON_TYPE, listeningWebhook } from './listening-webhook.ts';

const MIB = 2 ** 20;
const never = new AbortController().signal;
const nothing = (): void => undefined;
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

it('memory that an answer does not need goes to waiting reviews', async () => {
  const budget = createReviewBudget(new ManualClock());
  const reserve = (address: string, mib: number) => budget.reserve(address, mib * MIB, never, nothing);
  const held = await Promise.all(['a', 'a', 'b', 'b'].map((address) => reserve(address, 4)));
  for (const { arrived } of held) arrived();
  const waiting = ['c', 'd', 'e'].map((address) => reserve(address, 4));
  const ended: string[] = [];
  for (const [index, { answered }] of held.entries()) answered(2 * MIB, () => ended.push(`${index}`));
  // Eight of answers and eight of reviews: all that there is.
  const [third] = await Promise.all(waiting.slice(0, 2));
  let room = false;
  const last = waiting[2]?.then(() => {
    room = true;
  });
  await settled();
  expect([room, ended]).toEqual([false, []]);
  third?.release();
  await last;
});

it('an answer takes its own size, also if its review was small', async () => {
  const budget = createReviewBudget(new ManualClock());
  const reserve = (address: string, bytes: number) => budget.reserve(address, bytes, never, nothing);
  const small = await Promise.all(['a', 'b', 'c'].map((address) => reserve(address, 1)));
  for (const { answered } of small) expect(answered(4 * MIB, nothing)).toBe(true);
  await reserve('d', 4 * MIB - 1);
  let room = false;
  const late = reserve('e', 4 * MIB).then(() => {
    room = true;
  });
  await settled();
  expect(room).toBe(false);
  small[0]?.release();
  await late;
});

it('answers unread for a second make room, the oldest of the address with most first', async () => {
  const clock = new ManualClock();
  const budget = createReviewBudget(clock);
  const ended: string[] = [];
  async function answer(name: string, bytes: number): Promise<boolean> {
    const { arrived, answered } = await budget.reserve(name.slice(0, 1), 1, never, nothing);
    arrived();
    return answered(bytes, () => ended.push(name));
  }
  for (const name of ['a1', 'a2', 'b1', 'a3', 'b2']) expect(await answer(name, 2.6 * MIB)).toBe(true);
  await clock.advance(999);
  expect([await answer('c1', 3.2 * MIB), ended]).toEqual([false, []]);
  await clock.advance(1);
  expect([await answer('c2', 3.2 * MIB), ended]).toEqual([true, ['a1']]);
  // As much as anybody has: nobody gives way, and nothing is kept of it.
  expect([await answer('d1', 6 * MIB), ended]).toEqual([false, ['a1']]);
  expect([await answer('e1', 4 * MIB), ended]).toEqual([true, ['a1', 'a2']]);
});

it('unread answers make room for reviews, too, after a second', async () => {
  const clock = new ManualClock();
  const budget = createReviewBudget(clock);
  const ended: string[] = [];
  const held = await Promise.all(
    ['a', 'a', 'b', 'b'].map((address) => budget.reserve(address, 1, never, nothing)),
  );
  for (const [index, { arrived, answered }] of held.entries()) {
    arrived();
    expect(answered(4 * MIB, () => ended.push(`${index}`))).toBe(true);
  }
  let room = false;
  const waiting = budget.reserve('c', 4 * MIB, never, nothing).then((reservation) => {
    room = true;
    return reservation;
  });
  await clock.advance(999);
  expect([room, ended]).toEqual([false, []]);
  await clock.advance(1);
  const { release } = await waiting;
  expect(ended).toEqual(['0']);
  for (const reservation of held) reservation.release();
  release();
  expect(clock.pendingTimers).toBe(0);
});

it('an answer after the end of its connection takes no memory', async () => {
  const budget = createReviewBudget(new ManualClock());
  const reserve = (address: string) => budget.reserve(address, 4 * MIB, never, nothing);
  const gone = await reserve('a');
  gone.release();
  expect(gone.answered(4 * MIB, nothing)).toBe(false);
  await Promise.all(['b', 'c', 'd', 'e'].map(reserve));
});

it('callers that leave large answers unread hold at most the budget', async () => {
  // More than two kernels take of it unread.
  const body = 'x'.repeat(15 * MIB);
  const { open } = await listeningWebhook({
    '/large': async () => ({ status: 200, body }),
    '/small': async () => ({ status: 200, body: 'small' }),
  });
  async function ask(path: string, from: string): Promise<number> {
    const socket = await open(from);
    socket.write(`${head(path, JSON_TYPE, 'content-length: 1')}x`);
    const { status } = await answered(socket);
    socket.pause();
    return status;
  }
  const statuses = await Promise.all([1, 2, 3, 4].map((caller) => ask('/large', `127.0.3.${caller}`)));
  expect(statuses.sort()).toEqual([200, 503, 503, 503]);
  expect(await ask('/small', '127.0.3.5')).toBe(200);
});

it('callers that read no answers leave room for others', async () => {
  const { open } = await listeningWebhook({
    '/large': async () => ({ status: 200, body: 'x'.repeat(3.75 * MIB) }),
    '/small': async () => ({ status: 200, body: 'small' }),
  });
  async function ask(path: string, bytes: number, from: string): Promise<number> {
    const socket = await open(from);
    socket.write(head(path, JSON_TYPE, `content-length: ${bytes}`) + 'x'.repeat(bytes));
    const { status } = await answered(socket);
    socket.pause();
    return status;
  }
  const callers = ['127.0.3.1', '127.0.3.1', '127.0.3.2', '127.0.3.2'];
  await Promise.all(callers.map((caller) => ask('/large', 4 * MIB, caller)));
  expect(await ask('/small', MIB, '127.0.3.3')).toBe(200);
});

it('answers beyond half of the budget of an address make room at once, others after a second', async () => {
  const budget = createReviewBudget(new ManualClock());
  const KIB = 1024;
  const ended: string[] = [];
  const held = await Promise.all(Array.from({ length: 128 }, () => budget.reserve('a', 1, never, nothing)));
  const other = await budget.reserve('b', 1, never, nothing);
  for (const { arrived } of [...held, other]) arrived();
  for (const { answered } of held) expect(answered(127 * KIB, () => ended.push('a'))).toBe(true);
  expect(other.answered(200 * KIB, () => ended.push('b'))).toBe(true);
  // As much as others may have besides: half of all.
  const large = await budget.reserve('c', 4 * MIB, never, nothing);
  large.arrived();
  expect(large.answered(7 * MIB, () => ended.push('c'))).toBe(true);
  expect(new Set(ended)).toEqual(new Set(['a']));
});
