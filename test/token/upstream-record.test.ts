import { expect, it } from 'vitest';
import { afterForcedRenewal, mayForceRenewal, refusalCooldownMs } from '../../src/token/upstream-record.ts';

it('a futile renewal for an upstream 401 doubles the time to the next, up to ten minutes', () => {
  expect([0, 1, 2, 3, 4, 5, 99].map(refusalCooldownMs)).toEqual([
    30_000, 60_000, 120_000, 240_000, 480_000, 600_000, 600_000,
  ]);
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
