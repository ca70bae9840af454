import { expect, it } from 'vitest';
import type { ServiceAccountCaller } from '../../src/callers/caller.ts';
import {
  createKnownTokens,
  KEPT_OF_ONE_CALLER,
  type KnownToken,
  MOST_KNOWN,
} from '../../src/callers/known-tokens.ts';

const AT = { monotonicMs: 0, wallMs: 0 };

function confirmed(name: string, namespace = 'shop'): KnownToken {
  const caller: ServiceAccountCaller = {
    kind: 'service_account',
    namespace,
    serviceAccount: 'web',
    pod: { name, uid: name },
  };
  return { kind: 'confirmed', caller, expiresAt: AT, reviewedAt: AT };
}

it('keeps the newest of one caller, whose flood drives out nobody else', () => {
  const known = createKnownTokens();
  for (let n = 0; n < KEPT_OF_ONE_CALLER; n++) known.set(`quiet-${n}`, confirmed('quiet'));
  for (let n = 0; n < 100_000; n++) known.set(`flood-${n}`, confirmed('flood'));
  expect(known.size).toBe(MOST_KNOWN);
  for (let n = 0; n < KEPT_OF_ONE_CALLER; n++) expect(known.get(`quiet-${n}`)).toBeDefined();
  expect(known.get('flood-99999')).toBeDefined();
  expect(known.get('flood-0')).toBeUndefined();
});

it('remembers the tokens of many holders, who are one caller, while nobody else needs the room', () => {
  const known = createKnownTokens();
  const holders = Array.from({ length: 500 }, (_, n) => `holder-${n}`);
  for (const holder of holders) known.set(holder, confirmed('unbound'));
  expect(holders.filter((holder) => known.get(holder) === undefined)).toEqual([]);

  for (let n = 0; n < MOST_KNOWN - KEPT_OF_ONE_CALLER; n++) known.set(`pod-${n}`, confirmed(`pod-${n}`));

  expect(known.size).toBe(MOST_KNOWN);
  expect(holders.filter((holder) => known.get(holder) !== undefined)).toEqual(
    holders.slice(-KEPT_OF_ONE_CALLER),
  );
  expect(known.get('pod-0')).toBeDefined();
});

it('has the callers with many tokens make room one after the other', () => {
  const known = createKnownTokens();
  const each = MOST_KNOWN / 2;
  for (let n = 0; n < each; n++) {
    known.set(`first-${n}`, confirmed('first'));
    known.set(`second-${n}`, confirmed('second'));
  }

  for (let n = 0; n < each; n++) known.set(`pod-${n}`, confirmed(`pod-${n}`));

  expect(known.get(`first-${each - 1}`)).toBeDefined();
  expect(known.get(`second-${each - 1}`)).toBeDefined();
  expect(known.get('pod-0')).toBeDefined();
});

it('keeps no more than its bound of all callers together, the oldest first to go', () => {
  const known = createKnownTokens();
  for (let n = 0; n < MOST_KNOWN + 10; n++) known.set(`token-${n}`, confirmed(`pod-${n}`));
  expect(known.size).toBe(MOST_KNOWN);
  expect(known.get('token-9')).toBeUndefined();
  expect(known.get('token-10')).toBeDefined();
});

it('takes a token that is set again for a new one', () => {
  const known = createKnownTokens();
  for (let n = 0; n < MOST_KNOWN; n++) known.set(`token-${n}`, confirmed('web'));
  known.set('token-0', confirmed('web'));
  known.set('another', confirmed('web'));
  expect(known.get('token-0')).toBeDefined();
  expect(known.get('token-1')).toBeUndefined();
});
