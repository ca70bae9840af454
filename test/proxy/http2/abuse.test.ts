import { expect, test } from 'vitest';
import { AbuseCounter, type AbuseKind, DEFAULT_ABUSE_LIMITS } from '../../../src/proxy/http2/abuse.ts';
import { codeOf } from '../../../src/proxy/http2/errors.ts';

const LIMITS = { ...DEFAULT_ABUSE_LIMITS, ping: { burst: 3, perSecond: 2 } };

test.each(Object.keys(DEFAULT_ABUSE_LIMITS) as AbuseKind[])(
  '%s are allowed in a burst of the limit and no more',
  (kind) => {
    const counter = new AbuseCounter(DEFAULT_ABUSE_LIMITS);
    for (let count = 0; count < DEFAULT_ABUSE_LIMITS[kind].burst; count++)
      expect(counter.spend(kind, 0)).toBeUndefined();
    const reason = counter.spend(kind, 0);
    expect(reason).toMatch(/_flood$/);
    if (reason !== undefined) expect(codeOf(reason)).toBe(0xb);
  },
);

test('an abuse allowance refills with time up to the burst', () => {
  const counter = new AbuseCounter(LIMITS);
  for (let count = 0; count < 3; count++) counter.spend('ping', 1000);
  expect(counter.spend('ping', 1499)).toBe('ping_flood');
  expect(counter.spend('ping', 1500)).toBeUndefined();
  expect(counter.spend('ping', 1500)).toBe('ping_flood');
  for (let count = 0; count < 3; count++) expect(counter.spend('ping', 1_000_000)).toBeUndefined();
  expect(counter.spend('ping', 1_000_000)).toBe('ping_flood');
});

test('an abuse allowance refills with useful work up to the burst', () => {
  const counter = new AbuseCounter(LIMITS);
  counter.earn('ping', 10);
  for (let count = 0; count < 3; count++) expect(counter.spend('ping', 0)).toBeUndefined();
  counter.earn('ping', 1);
  expect(counter.spend('ping', 0)).toBeUndefined();
  expect(counter.spend('ping', 0)).toBe('ping_flood');
  counter.earn('ping', 10);
  for (let count = 0; count < 3; count++) expect(counter.spend('ping', 0)).toBeUndefined();
  expect(counter.spend('ping', 0)).toBe('ping_flood');
});

test('an abuse allowance of one kind is independent of another', () => {
  const counter = new AbuseCounter(LIMITS);
  for (let count = 0; count < 5; count++) counter.spend('ping', 0);
  expect(counter.spend('reset', 0)).toBeUndefined();
});
