import { expect, it } from 'vitest';
import { lookupThreads } from '../../../src/platform/process/thread-pool.ts';

it.each([
  [undefined, 2],
  ['32', 16],
  ['5', 3],
  ['1', 1],
  ['0', 1],
  ['many', 1],
  ['5000', 512],
])('with UV_THREADPOOL_SIZE %s, lookups have %i threads', (size, threads) => {
  expect(lookupThreads({ UV_THREADPOOL_SIZE: size })).toBe(threads);
});
