import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { later } from '../../src/platform/time/clock.ts';
import {
  backoffBoundMs,
  type FailedAttempt,
  isAboutToEnd,
  lastChanceDelayMs,
  renewalDelayMs,
  retryDelayMs,
  sameTokenDelayMs,
  sendableMs,
  spreadRenewalDelayMs,
} from '../../src/token/schedule.ts';
import { RENEWAL } from './policy.ts';

const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const lifetimeMs = fc.integer({ min: 1, max: 10 * 365 * 24 * 3600 }).map((seconds) => seconds * 1000);

describe('renewal', () => {
  it('comes at 65 to 75 % of the lifetime', () => {
    expect(renewalDelayMs(300_000, RENEWAL, 0)).toBe(225_000);
    expect(renewalDelayMs(300_000, RENEWAL, 0.999)).toBeCloseTo(195_030, 0);
  });

  it('leaves min(30 s, 20 %) of the lifetime unless the minimal interval forbids it', () => {
    fc.assert(
      fc.property(lifetimeMs, random, fc.double({ min: 0.1, max: 0.95, noNaN: true }), (life, r, at) => {
        const delay = renewalDelayMs(life, { ...RENEWAL, at }, r);
        expect(delay <= life - Math.min(30_000, life * 0.2) || delay === RENEWAL.minIntervalMs).toBe(true);
      }),
    );
  });

  it('is planned while the token may still be sent, unless the minimal interval forbids it', () => {
    fc.assert(
      fc.property(lifetimeMs, random, (life, r) => {
        for (const plan of [renewalDelayMs, spreadRenewalDelayMs]) {
          const delay = plan(life, { ...RENEWAL, at: 0.95 }, r);
          expect(delay < sendableMs(life) || delay === RENEWAL.minIntervalMs).toBe(true);
        }
      }),
    );
  });

  it.each([
    [1, 200],
    [2, 800],
    [3, 1750],
    [4, 2750],
    [300, 298_750],
  ])('of a token of %i s may send it for %i ms, until a whole second before its end', (seconds, ms) => {
    expect(sendableMs(seconds * 1000)).toBe(ms);
    // The provider granted it at the very end of one of its seconds; a fifth of one second is all that is risked.
    if (seconds > 1) expect(ms).toBeLessThan(seconds * 1000 - 999);
  });

  it('is at least 250 ms later, even if the policy allows 0 and the token is short-lived', () => {
    for (const plan of [renewalDelayMs, spreadRenewalDelayMs]) {
      expect(plan(1, { ...RENEWAL, minIntervalMs: 0 }, 0.999)).toBe(250);
      expect(plan(300_000, { ...RENEWAL, minIntervalMs: 0 }, 0)).toBe(225_000);
    }
  });

  it('never comes sooner than the minimal interval, however short the lifetime', () => {
    fc.assert(
      fc.property(lifetimeMs, random, (life, r) => {
        expect(renewalDelayMs(life, RENEWAL, r)).toBeGreaterThanOrEqual(RENEWAL.minIntervalMs);
        expect(spreadRenewalDelayMs(life, RENEWAL, r)).toBeGreaterThanOrEqual(RENEWAL.minIntervalMs);
      }),
    );
  });

  it('keeps its jitter if the latest moment is before the planned fraction', () => {
    expect(renewalDelayMs(100_000, { ...RENEWAL, at: 0.95 }, 0)).toBe(80_000);
    expect(renewalDelayMs(100_000, { ...RENEWAL, at: 0.95 }, 0.5)).toBe(75_000);
  });

  it('after a grant that a fleet may have made at once is anywhere in the last three quarters of the wait', () => {
    expect(spreadRenewalDelayMs(300_000, RENEWAL, 0)).toBe(225_000);
    expect(spreadRenewalDelayMs(300_000, RENEWAL, 0.5)).toBe(140_625);
    expect(spreadRenewalDelayMs(300_000, RENEWAL, 0.9999)).toBeCloseTo(56_267, 0);
    fc.assert(
      fc.property(lifetimeMs, random, (life, r) => {
        const ordinary = renewalDelayMs(life, RENEWAL, 0);
        expect(spreadRenewalDelayMs(life, RENEWAL, r)).toBeLessThanOrEqual(ordinary);
      }),
    );
  });
});

describe('a retry', () => {
  const WITHOUT_TOKEN: FailedAttempt = {
    consecutiveFailures: 1,
    rejected: false,
    heldForMs: 0,
    lifetimeMs: 300_000,
    tookMs: 0,
    recoveryMs: 30_000,
  };
  const bounds = (failure: Partial<FailedAttempt>) =>
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 50].map(
      (consecutiveFailures) => backoffBoundMs({ ...WITHOUT_TOKEN, ...failure, consecutiveFailures }) / 1000,
    );

  it('without a token has an interval that doubles from 1 s to policy.recovery', () => {
    for (const lifetimeMs of [5000, 300_000, 86_400_000]) {
      expect(bounds({ lifetimeMs })).toEqual([1, 2, 4, 8, 16, 30, 30, 30, 30, 30]);
    }
    expect(bounds({ recoveryMs: 120_000 })).toEqual([1, 2, 4, 8, 16, 32, 64, 120, 120, 120]);
  });

  it('is timed from the previous attempt’s start, and at least a second after its end', () => {
    expect(bounds({ tookMs: 10_000 })).toEqual([1, 2, 4, 8, 16, 20, 20, 20, 20, 20]);
    expect(bounds({ tookMs: 60_000 })).toEqual(Array(10).fill(1));
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 29_000 }), random, (tookMs, r) => {
        const delayMs = retryDelayMs({ ...WITHOUT_TOKEN, consecutiveFailures: 50, tookMs }, r);
        expect(tookMs + delayMs).toBeLessThanOrEqual(30_000);
      }),
    );
  });

  it('with a held token has an interval that quadruples, but comes before the token expires', () => {
    expect(bounds({ heldForMs: 80_000 })).toEqual([1, 4, 16, 64, 80, 80, 80, 80, 80, 80]);
    expect(bounds({ heldForMs: 86_400_000 })).toEqual([1, 4, 16, 64, 256, 600, 600, 600, 600, 600]);
  });

  it('never comes sooner with a held token than without', () => {
    expect(bounds({ heldForMs: 1 })).toEqual(bounds({}));
  });

  it('after rejected credentials without a token comes after minutes', () => {
    expect(bounds({ rejected: true })).toEqual([30, 60, 120, 240, 480, 600, 600, 600, 600, 600]);
  });

  it('after rejected credentials comes several times within the rest of a held token’s life', () => {
    expect(bounds({ rejected: true, heldForMs: 300_000 })).toEqual([
      10, 20, 40, 80, 100, 100, 100, 100, 100, 100,
    ]);
    expect(bounds({ rejected: true, heldForMs: 60_000 })).toEqual([10, 20, 20, 20, 20, 20, 20, 20, 20, 20]);
    expect(bounds({ rejected: true, heldForMs: 3_600_000 })).toEqual([
      10, 20, 40, 80, 160, 320, 600, 600, 600, 600,
    ]);
  });

  it('comes at once when the previous credentials are rejected too and the token is still valid', () => {
    const failure = { rejected: true, previousRejected: true };
    expect(bounds({ ...failure, heldForMs: 10_000 })).toEqual(Array(10).fill(1));
    expect(bounds(failure)).toEqual(bounds({ rejected: true }));
  });

  it('with the previous credentials leaves time for a request before the token expires', () => {
    const lastChance = (failure: Partial<FailedAttempt>, r: number) =>
      lastChanceDelayMs({ ...WITHOUT_TOKEN, rejected: true, ...failure }, r);
    expect(lastChance({ heldForMs: 60_000 }, 0)).toBe(45_000);
    expect(lastChance({ heldForMs: 60_000 }, 0.999)).toBeCloseTo(49_500, -2);
    expect(lastChance({ heldForMs: 10_000, lifetimeMs: 60_000 }, 0)).toBe(4000);
    expect(lastChance({ heldForMs: 5000 }, 0)).toBe(250);
    expect(lastChance({ heldForMs: 0 }, 0)).toBe(250);
    expect(lastChance({ heldForMs: 0, retryAfterMs: 7000 }, 0)).toBe(7000);
  });

  it('comes at a random moment in the second half of its interval', () => {
    fc.assert(
      fc.property(
        fc.record({
          consecutiveFailures: fc.integer({ min: 1, max: 10_000 }),
          rejected: fc.boolean(),
          heldForMs: fc.integer({ min: 0, max: 3_600_000 }),
          lifetimeMs,
          tookMs: fc.integer({ min: 0, max: 60_000 }),
          recoveryMs: fc.integer({ min: 1000, max: 600_000 }),
        }),
        random,
        (failure, r) => {
          const delay = retryDelayMs(failure, r);
          const bound = backoffBoundMs(failure);
          expect(delay).toBeGreaterThanOrEqual(bound / 2);
          expect(delay).toBeLessThanOrEqual(bound);
        },
      ),
    );
  });

  it('honours Retry-After as a minimum up to ten minutes, with jitter', () => {
    const retry = (retryAfterMs: number, r: number) => retryDelayMs({ ...WITHOUT_TOKEN, retryAfterMs }, r);
    expect(retry(20_000, 0)).toBe(20_000);
    expect(retry(20_000, 0.5)).toBe(21_000);
    expect(retry(86_400_000, 0)).toBe(600_000);
    expect(retry(0, 0)).toBe(500);
  });

  it('never comes sooner than the policy allows', () => {
    const policy = { ...WITHOUT_TOKEN, shortestRetryMs: 1000 };
    expect(retryDelayMs(policy, 0)).toBe(1000);
    expect(retryDelayMs({ ...policy, consecutiveFailures: 9 }, 0)).toBe(15_000);
    expect(lastChanceDelayMs({ ...policy, rejected: true }, 0)).toBe(1000);
  });
});

describe('a token that is granted again without a longer life', () => {
  it.each([
    [100, 250],
    [1000, 900],
    [2000, 1700],
    [3000, 2650],
    [5000, 4650],
  ])(
    'is requested again at its expiry once that is near: of %i ms after %i, whatever the minimal interval',
    (lifetime, ms) => {
      expect(sameTokenDelayMs(lifetime, { ...RENEWAL, minIntervalMs: 60_000 }, 0.5)).toBe(ms);
    },
  );

  it('is requested again at the usual time before', () => {
    for (const lifetime of [5001, 300_000]) {
      expect(sameTokenDelayMs(lifetime, RENEWAL, 0.5)).toBe(renewalDelayMs(lifetime, RENEWAL, 0.5));
    }
  });

  it('counts as expiring for five seconds before and after, by both clocks', () => {
    const end = { monotonicMs: 100_000, wallMs: 1_900_000_100_000 };
    for (const [ms, expected] of [
      [-5001, false],
      [-5000, true],
      [5000, true],
      [5001, false],
    ] as const) {
      expect(isAboutToEnd(end, later(end, ms))).toBe(expected);
    }
    expect(isAboutToEnd(end, { ...end, wallMs: end.wallMs + 60_000 })).toBe(false);
  });
});
