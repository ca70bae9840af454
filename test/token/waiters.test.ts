import { expect, it } from 'vitest';
import { abortable } from '../../src/token/waiters.ts';
import { collectGarbage } from '../support/collect-garbage.ts';

const GONE = () => new Error('gone');

it('is what the promise comes to for one who stays, or who has no way to go', async () => {
  const { signal } = new AbortController();
  for (const given of [undefined, signal]) {
    expect(await abortable(Promise.resolve('a'), given, GONE)).toBe('a');
    await expect(abortable(Promise.reject(new Error('none')), given, GONE)).rejects.toThrow('none');
  }
});

it('rejects for one who goes, or has gone before, and leaves the promise to others', async () => {
  const { promise, resolve } = Promise.withResolvers<string>();
  const leaving = new AbortController();
  const [left, stayed] = [abortable(promise, leaving.signal, GONE), abortable(promise, undefined, GONE)];
  leaving.abort();
  await expect(left).rejects.toThrow('gone');
  await expect(abortable(promise, leaving.signal, GONE)).rejects.toThrow('gone');
  resolve('a');
  expect(await stayed).toBe('a');
});

it('holds nobody who has gone, however long the promise takes', async () => {
  const { promise } = Promise.withResolvers<string>();
  const waiting: WeakRef<object>[] = [];
  const leaving = Array.from({ length: 10 }, () => new AbortController());
  for (const { signal } of leaving) {
    const request = { head: 'x'.repeat(1000) };
    waiting.push(new WeakRef(request));
    void abortable(promise, signal, GONE).catch(() => request.head);
  }
  for (const one of leaving.slice(1)) one.abort();
  await collectGarbage();
  const held = waiting.map((request) => request.deref() !== undefined);
  expect(held).toEqual([true, ...Array.from({ length: 9 }, () => false)]);
});
