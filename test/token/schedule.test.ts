import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { refusalCooldownMs, renewalDelayMs, retryDelayMs } from '../../src/token/schedule.ts';
import { RENEWAL } from './policy.ts';

const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const lifetimeMs = fc.integer({ min: 1, max: 10 * 365 * 24 * 3600 }).map((seconds) => seconds * 1000);

describe('renewal', () => {
  it('comes at 65 to 75 % of the lifetime', () => {
    expect(renewalDelayMs(300_000, RENEWAL, 0)).toBe(225_000);
    expect(renewalDelayMs(300_000, RENEWAL, 0.999)).toBeCloseTo(195_030, 0);
  });

  it('leaves min(30 s, 20 %) of the lifetime, unless the floor forbids it', () => {
    fc.assert(
      fc.property(lifetimeMs, random, fc.double({ min: 0.1, max: 0.95, noNaN: true }), (life, r, at) => {
        const delay = renewalDelayMs(life, { ...RENEWAL, at }, r);
        expect(delay <= life - Math.min(30_000, life * 0.2) || delay === RENEWAL.minIntervalMs).toBe(true);
      }),
    );
  });

  it('never comes sooner than the floor, however short the lifetime', () => {
    fc.assert(
      fc.property(lifetimeMs, random, (life, r) => {
        expect(renewalDelayMs(life, RENEWAL, r)).toBeGreaterThanOrEqual(RENEWAL.minIntervalMs);
      }),
    );
  });
});

describe('retry', () => {
  it('is full jitter within a bound that doubles from 1 s to 60 s', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 10_000 }), random, (consecutiveFailures, r) => {
        const bound = Math.min(60_000, 1000 * 2 ** (consecutiveFailures - 1));
        const delay = retryDelayMs({ consecutiveFailures, rejected: false }, r);
        expect(delay).toBe(Math.max(250, bound * r));
      }),
    );
  });

  it('slows to minutes when the credentials are rejected', () => {
    const delays = [1, 2, 3, 4, 5, 6, 50].map((n) =>
      retryDelayMs({ consecutiveFailures: n, rejected: true }, 0),
    );
    expect(delays).toEqual([15_000, 30_000, 60_000, 120_000, 240_000, 300_000, 300_000]);
  });

  it('honours Retry-After as a lower bound, up to ten minutes, and spreads what it delays', () => {
    const retry = (retryAfterMs: number, r: number) =>
      retryDelayMs({ consecutiveFailures: 1, rejected: false, retryAfterMs }, r);
    expect(retry(20_000, 0)).toBe(20_000);
    expect(retry(20_000, 0.5)).toBe(21_000);
    expect(retry(86_400_000, 0)).toBe(600_000);
    expect(retry(0, 0)).toBe(250);
  });
});

it('a futile renewal for an upstream 401 doubles the time to the next, up to ten minutes', () => {
  expect([0, 1, 2, 3, 4, 5, 99].map(refusalCooldownMs)).toEqual([
    30_000, 60_000, 120_000, 240_000, 480_000, 600_000, 600_000,
  ]);
});
