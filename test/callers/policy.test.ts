import { expect, it } from 'vitest';
import type { Caller } from '../../src/callers/caller.ts';
import { type CallerMatch, matches, permissionOf } from '../../src/callers/policy.ts';

const web: Caller = { kind: 'service_account', namespace: 'shop', serviceAccount: 'web' };
const spiffe: Caller = { kind: 'spiffe', uri: 'spiffe://cluster.local/ns/shop/sa/web' };
const certificate: Caller = { kind: 'certificate', by: 'dns_names', names: ['web.shop.svc', 'web'] };
const commonName: Caller = { kind: 'certificate', by: 'common_name', names: ['Web'] };

it('allows nobody anything where no rule names them', () => {
  for (const caller of [web, spiffe, certificate]) expect(permissionOf([], caller)).toBeUndefined();
  const others = [
    { match: { kind: 'service_account', namespace: 'shop', serviceAccount: 'admin' }, allows: 1 },
    { match: { kind: 'service_account', namespace: 'sho', serviceAccount: '*' }, allows: 2 },
    { match: { kind: 'service_account', namespace: '*', serviceAccount: '*' }, allows: 3 },
  ] as const;
  expect(permissionOf(others, web)).toBeUndefined();
});

it('says what the first rule says', () => {
  const rules = [
    { match: { kind: 'service_account', namespace: 'shop', serviceAccount: 'web' }, allows: 'first' },
    { match: { kind: 'service_account', namespace: 'shop', serviceAccount: '*' }, allows: 'second' },
  ] as const;
  expect(permissionOf(rules, web)).toBe('first');
  expect(permissionOf(rules, { ...web, serviceAccount: 'other' })).toBe('second');
});

it.each<[CallerMatch, Caller, boolean]>([
  [{ kind: 'spiffe', uri: 'spiffe://cluster.local/ns/shop/sa/web' }, spiffe, true],
  [{ kind: 'spiffe', uri: 'spiffe://cluster.local/ns/shop/*' }, spiffe, true],
  [{ kind: 'spiffe', uri: 'spiffe://cluster.local/ns/shop' }, spiffe, false],
  [{ kind: 'spiffe', uri: 'spiffe://cluster.local/ns/sho/*' }, spiffe, false],
  [{ kind: 'spiffe', uri: 'spiffe://cluster.local/ns/shop/sa/web' }, web, false],
  [{ kind: 'certificate', name: 'web' }, certificate, true],
  [{ kind: 'certificate', name: 'Web.Shop.SVC' }, certificate, true],
  [{ kind: 'certificate', name: 'Web' }, commonName, true],
  [{ kind: 'certificate', name: 'web' }, commonName, false],
  [{ kind: 'certificate', name: '*' }, certificate, false],
  [{ kind: 'service_account', namespace: 'shop', serviceAccount: '*' }, certificate, false],
])('%j and %j: %s', (match, caller, expected) => {
  expect(matches(match, caller)).toBe(expected);
});
