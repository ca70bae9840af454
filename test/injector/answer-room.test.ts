/** What is kept of the room for reviews once they are answered: the answer's part, for as long as nobody reads it. */

import { expect, it } from 'vitest';
import { createReviewBudget } from '../../src/injector/review-budget.ts';
import { answered, head, JSON_TYPE, listeningWebhook } from './listening-webhook.ts';

const MIB = 2 ** 20;
const never = new AbortController().signal;
const nothing = (): void => undefined;

it('what an answer does not need is given back, to whoever waits', async () => {
  const budget = createReviewBudget();
  const reserve = (address: string, mib: number) => budget.reserve(address, mib * MIB, never, nothing);
  const held = await Promise.all(['a', 'a', 'b', 'b'].map((address) => reserve(address, 4)));
  for (const { arrived } of held) arrived();
  const waiting = ['c', 'd'].map((address) => reserve(address, 4));
  for (const { answered } of held) answered(2 * MIB);
  // Eight of answers and eight of reviews: all that there is.
  const [third] = await Promise.all(waiting);
  let room = false;
  const last = reserve('e', 4).then(() => {
    room = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(room).toBe(false);
  third?.release();
  await last;
});

it('an answer that is larger than its review, or comes after its connection has ended, takes nothing more', async () => {
  const budget = createReviewBudget();
  const [large, gone] = await Promise.all(
    ['a', 'b'].map((address) => budget.reserve(address, 4 * MIB, never, nothing)),
  );
  large?.answered(12 * MIB);
  gone?.release();
  gone?.answered(4 * MIB);
  await Promise.all(['c', 'd', 'e'].map((address) => budget.reserve(address, 4 * MIB, never, nothing)));
});

it('callers who read no answer leave room for others', async () => {
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
