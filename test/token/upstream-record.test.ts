import { expect, it } from 'vitest';
import { afterForcedRenewal, mayForceRenewal } from '../../src/token/upstream-record.ts';

it.each([
  [0, 30_000],
  [1, 60_000],
  [2, 120_000],
  [3, 240_000],
  [4, 480_000],
  [5, 600_000],
  [99, 600_000],
])('after %d futile renewals for an upstream 401 the next comes %d ms later', (futile, laterMs) => {
  const record = { state: 'refusing', forcedAtMs: 7, futile } as const;
  expect(mayForceRenewal(record, 7 + laterMs - 1)).toBe(false);
  expect(mayForceRenewal(record, 7 + laterMs)).toBe(true);
});

it('an upstream that has been quiet for twice its time starts afresh', () => {
  const first = afterForcedRenewal(undefined, 0);
  expect(mayForceRenewal(first, 29_999)).toBe(false);
  expect(mayForceRenewal(first, 30_000)).toBe(true);
  expect(afterForcedRenewal(first, 59_999)).toMatchObject({ futile: 1 });
  expect(afterForcedRenewal(first, 60_000)).toMatchObject({ futile: 0 });
});

it('an upstream that took a token may force a renewal at once', () => {
  expect(mayForceRenewal({ state: 'accepting', token: 1 }, 0)).toBe(true);
});
