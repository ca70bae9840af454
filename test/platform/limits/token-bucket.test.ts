import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type Rate, TokenBucket, TokenBuckets } from '../../../src/platform/limits/token-bucket.ts';
import { volume } from '../../support/volume.ts';

/** Times are eighths of a second: what they refill is an exact number, so that a bucket has it to the bit. */
const STEP_MS = 125;

const NAMES = ['a', 'b', 'c'];

const operation = fc.record({
  do: fc.constantFrom('take', 'take', 'take', 'charge', 'refund', 'wait'),
  afterSteps: fc.nat(3),
  name: fc.constantFrom(...NAMES),
});
const sequence = fc.array(operation, { minLength: 200, maxLength: 400 });
const rate = fc.record({ burst: fc.integer({ min: 1, max: 6 }), perSecond: fc.integer({ min: 1, max: 4 }) });

/** Refilled step by step, in eighths of one. */
class PlainBucket {
  readonly #rate: Rate;
  #eighths: number;

  constructor(rate: Rate) {
    this.#rate = rate;
    this.#eighths = rate.burst * 8;
  }

  step(): void {
    this.add(this.#rate.perSecond);
  }

  add(eighths: number): void {
    this.#eighths = Math.min(this.#rate.burst * 8, this.#eighths + eighths);
  }

  get hasOne(): boolean {
    return this.#eighths >= 8;
  }

  get waitMs(): number {
    return (Math.max(0, 8 - this.#eighths) * STEP_MS) / this.#rate.perSecond;
  }
}

it('a token bucket gives, after each of 200 steps and more, what one that is refilled bit by bit does', () => {
  fc.assert(
    fc.property(rate, sequence, (rate, steps) => {
      const bucket = new TokenBucket(rate);
      const plain = new PlainBucket(rate);
      let nowMs = 1000;
      for (const { do: what, afterSteps } of steps) {
        nowMs += afterSteps * STEP_MS;
        for (let step = 0; step < afterSteps; step++) plain.step();
        if (what === 'take') {
          const hasOne = plain.hasOne;
          if (hasOne) plain.add(-8);
          expect(bucket.take(nowMs)).toBe(hasOne);
        } else if (what === 'charge') {
          bucket.charge(nowMs);
          plain.add(-8);
        } else if (what === 'refund') {
          bucket.refund(1);
          plain.add(8);
        }
        expect(bucket.waitMs(nowMs)).toBeCloseTo(plain.waitMs, 6);
      }
    }),
    { numRuns: volume(30, 100) },
  );
});

it('token buckets that forget the full ones give what buckets that are never forgotten do', () => {
  fc.assert(
    fc.property(rate, sequence, (rate, steps) => {
      const buckets = new TokenBuckets(rate, NAMES.length);
      const kept = new Map(NAMES.map((name) => [name, new TokenBucket(rate)]));
      let nowMs = 1000;
      for (const { do: what, afterSteps, name } of steps) {
        nowMs += afterSteps * STEP_MS;
        const own = kept.get(name) as TokenBucket;
        if (what === 'take') expect(buckets.take(name, nowMs)).toBe(own.take(nowMs));
        else if (what === 'charge') {
          buckets.charge(name, nowMs);
          own.charge(nowMs);
        } else if (what === 'refund') {
          buckets.refund(name, nowMs);
          own.refund(1);
        }
        expect(buckets.waitMs(name, nowMs)).toBe(own.waitMs(nowMs));
      }
    }),
    { numRuns: volume(30, 100) },
  );
});

it('a token bucket whose rate changes keeps what is left, as far as the new burst allows', () => {
  const bucket = new TokenBucket({ burst: 4, perSecond: 1 });
  bucket.take(0);
  bucket.rate = { burst: 2, perSecond: 10 };
  expect([bucket.take(0), bucket.take(0), bucket.take(0)]).toEqual([true, true, false]);
  bucket.rate = { burst: 8, perSecond: 1 };
  expect(bucket.take(0)).toBe(false);
  expect(bucket.waitMs(0)).toBe(1000);
});

it('buckets are bounded in number: the one used longest ago starts full again', () => {
  const buckets = new TokenBuckets({ burst: 1, perSecond: 1 }, 2);
  for (const name of ['a', 'b']) buckets.take(name, 0);
  expect(buckets.take('a', 0)).toBe(false);
  buckets.take('c', 0);
  expect(buckets.size).toBe(2);
  expect([buckets.waitMs('a', 0), buckets.waitMs('b', 0)]).toEqual([1000, 0]);
});

it('full buckets are forgotten, up to the first one that is not full', () => {
  const buckets = new TokenBuckets({ burst: 2, perSecond: 1 }, 100);
  for (const name of ['a', 'b', 'c']) buckets.take(name, 0);
  buckets.take('b', 0);
  buckets.take('d', 1000);
  expect(buckets.size).toBe(2);
  buckets.take('d', 2000);
  expect(buckets.size).toBe(1);
});
