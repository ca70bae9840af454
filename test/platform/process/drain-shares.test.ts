import { expect, it } from 'vitest';
import { drainShares } from '../../../src/platform/process/shutdown.ts';

it.each([
  [25_000, { drainDelayMs: 5000, hasSpans: true }, { delayMs: 5000, drainMs: 4800, spansMs: 1000 }],
  [25_000, { drainDelayMs: 0, hasSpans: false }, { delayMs: 0, drainMs: 5000, spansMs: 0 }],
  [5000, { drainDelayMs: 5000, hasSpans: true }, { delayMs: 3200, drainMs: 800, spansMs: 1000 }],
  [2000, { drainDelayMs: 60_000, hasSpans: true }, { delayMs: 1280, drainMs: 320, spansMs: 400 }],
  [2000, { drainDelayMs: 60_000, hasSpans: false }, { delayMs: 1600, drainMs: 400, spansMs: 0 }],
])('of %d ms, by %o, requests in flight have a part, however long it takes leave', (whole, by, shares) => {
  const found = drainShares(whole, by);
  expect(found).toEqual(shares);
  expect(found.delayMs + found.drainMs + found.spansMs).toBeLessThanOrEqual(whole);
});
