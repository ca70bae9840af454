import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createReviewBudget, MAX_REVIEW_BYTES, type ReviewBudget } from '../../src/injector/review-budget.ts';
import { readReviewBody } from '../../src/injector/webhook-listener.ts';
import { ManualClock } from '../support/manual-clock.ts';

function requestOf(
  chunks: readonly Buffer[],
  headers: Readonly<Record<string, string>> = {},
): IncomingMessage {
  return Object.assign(Readable.from(chunks), { headers, socket: { remoteAddress: 'a' } }) as never;
}

/** A budget of which it is seen what is asked and given back. */
function watchedBudget(onReserve = (): void => undefined) {
  const reservation = { arrived: vi.fn(), answered: vi.fn(), release: vi.fn() };
  const reserve = vi.fn(async () => {
    onReserve();
    return reservation;
  });
  return { reserve, ...reservation };
}

const MIB = 2 ** 20;
const signal = new AbortController().signal;

describe('a review', () => {
  it.each([
    ['that says its length', { 'content-length': '6' }, 6],
    ['that does not', {}, MAX_REVIEW_BYTES],
  ])('%s is read whole, in the room it may need', async (_, headers, room) => {
    const budget = watchedBudget();
    const chunks = [Buffer.from('one'), Buffer.from('two')];
    const review = await readReviewBody(requestOf(chunks, headers), budget, new ManualClock(), signal);
    expect(review).toMatchObject({ bytes: Buffer.from('onetwo') });
    expect(budget.reserve).toHaveBeenCalledExactlyOnceWith('a', room, signal, expect.any(Function));
    expect(budget.arrived).toHaveBeenCalledTimes(1);
    expect(budget.release).not.toHaveBeenCalled();
  });

  it('that is too large asks for no room, or gives it back', async () => {
    const announced = watchedBudget();
    const request = requestOf([], { 'content-length': String(MAX_REVIEW_BYTES + 1) });
    expect(await readReviewBody(request, announced, new ManualClock(), signal)).toEqual({ status: 413 });
    expect(announced.reserve).not.toHaveBeenCalled();

    const found = watchedBudget();
    const chunks = Array<Buffer>(5).fill(Buffer.alloc(MIB));
    expect(await readReviewBody(requestOf(chunks), found, new ManualClock(), signal)).toEqual({
      status: 413,
    });
    expect(found.release).toHaveBeenCalledTimes(1);
  });

  it('of the largest size is read', async () => {
    const chunks = Array<Buffer>(4).fill(Buffer.alloc(MIB));
    const review = await readReviewBody(requestOf(chunks), watchedBudget(), new ManualClock(), signal);
    expect('bytes' in review && review.bytes.length).toBe(MAX_REVIEW_BYTES);
  });

  it('takes no memory once it is answered, or if it never arrives whole', async () => {
    const memory = (): number => process.memoryUsage().arrayBuffers;
    const budget = watchedBudget();
    const review = await readReviewBody(requestOf([Buffer.from('one')]), budget, new ManualClock(), signal);
    if (!('bytes' in review)) throw new Error('the review was not read');
    const giveWay = (): void => undefined;
    const before = memory();
    review.answered(7, giveWay);
    expect(budget.answered).toHaveBeenCalledExactlyOnceWith(7, giveWay);
    expect(memory() - before).toBeLessThanOrEqual(MIB - MAX_REVIEW_BYTES);
    expect(review.bytes).toHaveLength(0);

    const cut = Readable.from(
      (function* () {
        yield Buffer.from('one');
        throw new Error('reset');
      })(),
    );
    const request = Object.assign(cut, { headers: {}, socket: { remoteAddress: 'a' } }) as never;
    const made = vi.spyOn(Buffer, 'allocUnsafeSlow');
    onTestFinished(() => void made.mockRestore());
    await expect(readReviewBody(request, budget, new ManualClock(), signal)).rejects.toThrow('reset');
    const long = requestOf([Buffer.from('three')], { 'content-length': '3' });
    expect(await readReviewBody(long, budget, new ManualClock(), signal)).toEqual({ status: 413 });
    const buffers = made.mock.results.map(({ value }) => (value as Buffer<ArrayBuffer>).buffer);
    expect(buffers.map(({ detached }) => detached)).toEqual([true, true]);
  });

  it('leaves no timer behind, and its room when the connection has ended', async () => {
    const [clock, caller, budget] = [new ManualClock(), new AbortController(), watchedBudget()];
    await readReviewBody(requestOf([]), budget, clock, caller.signal);
    expect(clock.pendingTimers).toBe(0);
    caller.abort();
    expect(budget.release).toHaveBeenCalledTimes(1);
  });

  it('whose caller leaves just as there is room gives it back at once', async () => {
    const caller = new AbortController();
    const budget: ReviewBudget & ReturnType<typeof watchedBudget> = watchedBudget(() => caller.abort());
    await readReviewBody(requestOf([]), budget, new ManualClock(), caller.signal);
    expect(budget.release).toHaveBeenCalledTimes(1);
  });

  it('that has to give way fails with the reason', async () => {
    const budget = createReviewBudget(new ManualClock());
    const request = Object.assign(new Readable({ read: () => undefined }), {
      headers: {},
      socket: { remoteAddress: 'a' },
    }) as never as IncomingMessage;
    const reading = readReviewBody(request, budget, new ManualClock(), signal);
    for (const address of ['a', 'b', 'c', 'd'])
      void budget.reserve(address, 4 * MIB, signal, () => undefined);
    await expect(reading).rejects.toThrow('another caller, who has less, needs the room');
  });
});
