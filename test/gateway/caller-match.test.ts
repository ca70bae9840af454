import { expect, it } from 'vitest';
import type { Caller } from '../../src/callers/caller.ts';
import type { CallerMatch } from '../../src/config/config.ts';
import { matches } from '../../src/gateway/authorizer.ts';

const web: Caller = { kind: 'service_account', namespace: 'shop', serviceAccount: 'web' };
const spiffe: Caller = { kind: 'spiffe', uri: 'spiffe://cluster.local/ns/shop/sa/web' };
const certificate: Caller = { kind: 'certificate', by: 'dns_names', names: ['web.shop.svc', 'web'] };
const commonName: Caller = { kind: 'certificate', by: 'common_name', names: ['Web'] };

it.each<[CallerMatch, Caller, boolean]>([
  [{ kind: 'service_account', namespace: 'shop', serviceAccount: 'web' }, web, true],
  [{ kind: 'service_account', namespace: 'shop', serviceAccount: '*' }, web, true],
  [{ kind: 'service_account', namespace: 'shop', serviceAccount: 'admin' }, web, false],
  [{ kind: 'service_account', namespace: 'sho', serviceAccount: '*' }, web, false],
  [{ kind: 'service_account', namespace: '*', serviceAccount: '*' }, web, false],
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
