import { expect, it } from 'vitest';
import { BlockPool } from '../../../src/proxy/io/byte-queue.ts';

it('the block pool lends a block to one holder at a time, and again once it is returned', () => {
  const pool = new BlockPool(16, 2);
  const one = pool.take();
  const two = pool.take();
  expect(one.length).toBe(16);
  expect(two).not.toBe(one);
  pool.giveBack(one);
  expect(pool.take()).toBe(one);
  expect(pool.take()).not.toBe(two);
});

it('the block pool keeps no more blocks than its limit', () => {
  const pool = new BlockPool(16, 1);
  const [one, two] = [pool.take(), pool.take()];
  pool.giveBack(one);
  pool.giveBack(two);
  expect(pool.take()).toBe(one);
  expect(pool.take()).not.toBe(two);
});
