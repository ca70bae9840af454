import { describe, expect, it } from 'vitest';
import { candidatesFor, readSearchList } from '../../../src/platform/dns/dns-lookup.ts';

/** As the kubelet writes it. */
const POD = `search shop.svc.cluster.local svc.cluster.local cluster.local
nameserver 10.96.0.10
options ndots:5
`;

describe('resolv.conf', () => {
  it.each([
    ['of a pod', POD, ['shop.svc.cluster.local', 'svc.cluster.local', 'cluster.local'], 5],
    ['that is empty', '', [], 1],
    ['with a domain', 'domain example.com.\n', ['example.com'], 1],
    ['whose last line counts', 'search a b\nsearch c\noptions ndots:2 ndots:3\n', ['c'], 3],
    ['with comments', '# search x\nsearch a ; b\n', ['a'], 1],
    ['with more dots than there are', 'options ndots:99\n', [], 15],
    ['with a number that is none', 'options ndots:many\n', [], 1],
    ['with many domains', `search ${'d '.repeat(40)}`, new Array(32).fill('d'), 1],
  ])('%s', (_, text, domains, ndots) => {
    expect(readSearchList(text)).toEqual({ domains, ndots });
  });
});

describe('what a name may stand for', () => {
  const list = readSearchList(POD);
  it.each([
    ['api', ['api.shop.svc.cluster.local', 'api.svc.cluster.local', 'api.cluster.local', 'api']],
    [
      'api.example.com',
      [
        'api.example.com.shop.svc.cluster.local',
        'api.example.com.svc.cluster.local',
        'api.example.com.cluster.local',
        'api.example.com',
      ],
    ],
    ['a.b.c.d.e.f', ['a.b.c.d.e.f', ...list.domains.map((domain) => `a.b.c.d.e.f.${domain}`)]],
    ['api.example.com.', ['api.example.com']],
  ])('%s', (name, candidates) => {
    expect(candidatesFor(name, list)).toEqual(candidates);
  });
});
