import { expect, it } from 'vitest';
import type { ServiceAccountCaller } from '../../src/callers/caller.ts';
import {
  createKnownTokens,
  type KnownToken,
  MOST_KNOWN,
  MOST_OF_ONE_CALLER,
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
  known.set('quiet', confirmed('quiet'));
  for (let n = 0; n < 100_000; n++) known.set(`flood-${n}`, confirmed('flood'));
  expect(known.size).toBe(1 + MOST_OF_ONE_CALLER);
  expect(known.get('quiet')).toBeDefined();
  expect(known.get('flood-99999')).toBeDefined();
  expect(known.get('flood-0')).toBeUndefined();
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
  for (let n = 0; n < MOST_OF_ONE_CALLER; n++) known.set(`token-${n}`, confirmed('web'));
  known.set('token-0', confirmed('web'));
  known.set('another', confirmed('web'));
  expect(known.get('token-0')).toBeDefined();
  expect(known.get('token-1')).toBeUndefined();
});
