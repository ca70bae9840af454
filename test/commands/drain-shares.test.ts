import { expect, it } from 'vitest';
import { drainShares } from '../../src/commands/drain-shares.ts';

it.each([
  [25_000, { leaveDelayMs: 5000, hasSpans: true }, { leaveMs: 5000, drainMs: 4800, spansMs: 1000 }],
  [25_000, { leaveDelayMs: 0, hasSpans: false }, { leaveMs: 0, drainMs: 5000, spansMs: 0 }],
  [5000, { leaveDelayMs: 5000, hasSpans: true }, { leaveMs: 3200, drainMs: 800, spansMs: 1000 }],
  [2000, { leaveDelayMs: 60_000, hasSpans: true }, { leaveMs: 1280, drainMs: 320, spansMs: 400 }],
  [2000, { leaveDelayMs: 60_000, hasSpans: false }, { leaveMs: 1600, drainMs: 400, spansMs: 0 }],
])('of %d ms, by %o, requests in flight have a part, however long it takes leave', (whole, by, shares) => {
  const found = drainShares(whole, by);
  expect(found).toEqual(shares);
  expect(found.leaveMs + found.drainMs + found.spansMs).toBeLessThanOrEqual(whole);
});
