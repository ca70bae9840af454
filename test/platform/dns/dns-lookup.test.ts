/** Against a name server: the hosts file is never asked. */

import type { LookupOptions } from 'node:dns';
import { type LookupAddress, Resolver } from 'node:dns';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type DnsLookupOptions, dnsLookup, exceptFor } from '../../../src/platform/dns/dns-lookup.ts';
import { type DnsRecords, startDnsServer } from '../../support/dns-server.ts';
import { freePort } from '../../support/free-port.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const MAX_KEPT = 128;

const MAX_HALF_KEPT_MS = 1000;

const MAX_KEPT_MS = 300_000;

async function resolving(
  records: Readonly<Record<string, DnsRecords>>,
  options: Partial<DnsLookupOptions> = {},
) {
  const server = await startDnsServer(records);
  const resolver = new Resolver({ timeout: 100, tries: 1 });
  resolver.setServers([`127.0.0.1:${server.port}`]);
  onTestFinished(() => resolver.cancel());
  const clock = new ManualClock();
  const lookup = dnsLookup({
    resolver,
    searchList: { domains: [], ndots: 1 },
    clock,
    preferred: () => 4,
    ...options,
  });
  const find = (name: string, asked: LookupOptions = { all: true }): Promise<readonly string[]> =>
    new Promise((resolve, reject) => {
      lookup(name, asked, (error, address: string | LookupAddress[]) => {
        if (error !== null) reject(error);
        else resolve(typeof address === 'string' ? [address] : address.map((one) => one.address));
      });
    });
  return { ...server, clock, lookup, find };
}

const API = 'api.example.com';

describe('a name', () => {
  it('has its addresses of both families, the preferred one first', async () => {
    const records = { [API]: { addresses: ['192.0.2.1', '2001:db8::1', '192.0.2.2'] } };
    expect(await (await resolving(records)).find(API)).toEqual(['192.0.2.1', '192.0.2.2', '2001:db8::1']);
    const six = await resolving(records, { preferred: () => 6 });
    expect(await six.find('API.example.com')).toEqual(['2001:db8::1', '192.0.2.1', '192.0.2.2']);
    expect(await six.find(API, { family: 4 })).toEqual(['192.0.2.1']);
    expect(await six.find(API, {})).toEqual(['2001:db8::1']);
  });

  it('has those of the name that it stands for', async () => {
    const { find } = await resolving({
      [API]: { cname: 'edge.example.net', ttl: 60 },
      'edge.example.net': { addresses: ['192.0.2.7', '2001:db8::7'] },
    });
    expect(await find(API)).toEqual(['192.0.2.7', '2001:db8::7']);
  });

  it('that the hosts file has is asked of DNS', async () => {
    const { find, asked } = await resolving({ localhost: { addresses: ['192.0.2.9'] } });
    expect(await find('localhost')).toEqual(['192.0.2.9']);
    expect(asked.toSorted()).toEqual(['A localhost', 'AAAA localhost']);
  });

  it('whose answer is too long for UDP is asked for over TCP', async () => {
    const addresses = Array.from({ length: 100 }, (_, index) => `192.0.2.${index}`);
    const { find, asked } = await resolving({ [API]: { addresses, truncated: true } });
    expect((await find(API)).toSorted()).toEqual(addresses.toSorted());
    expect(asked).toContain(`A ${API} over TCP`);
  });

  it('of one family alone is found in it', async () => {
    const { find } = await resolving({ [API]: { addresses: ['2001:db8::1'] } });
    expect(await find(API)).toEqual(['2001:db8::1']);
    await expect(find(API, { family: 4 })).rejects.toMatchObject({ code: 'ENOTFOUND' });
  });

  it.each([
    ['is not there', undefined, 'ENOTFOUND', `DNS has no address for ${API}: ENOTFOUND`],
    ['has no addresses', {}, 'ENOTFOUND', `DNS has no address for ${API}: ENOTFOUND`],
    [
      'is not for this server to say',
      { rcode: 'SERVFAIL' },
      'EAI_AGAIN',
      `no name server says where ${API} is: ESERVFAIL`,
    ],
    ['is refused', { rcode: 'REFUSED' }, 'EAI_AGAIN', `no name server says where ${API} is: EREFUSED`],
    ['is not answered for', { silent: true }, 'EAI_AGAIN', `no name server says where ${API} is: ETIMEOUT`],
  ] as const)('that %s is an error', async (_, record, code, message) => {
    const { find } = await resolving(record === undefined ? {} : { [API]: record });
    await expect(find(API)).rejects.toMatchObject({ code, message });
  });

  it('fails as a lookup, not as a refused connection, without a DNS server', async () => {
    const resolver = new Resolver({ timeout: 200, tries: 1 });
    resolver.setServers([`127.0.0.1:${await freePort()}`]);
    const searchList = { domains: [], ndots: 1 };
    const lookup = dnsLookup({ resolver, searchList, clock: new ManualClock(), preferred: () => 4 });
    const error = await new Promise((resolve) => lookup(API, {}, resolve));
    expect(error).toMatchObject({
      code: 'EAI_AGAIN',
      message: expect.stringMatching(/^no name server says where .*: (?:ECONNREFUSED|ETIMEOUT)$/),
    });
  });
});

describe('a short name', () => {
  const searchList = { domains: ['shop.svc.cluster.local', 'svc.cluster.local'], ndots: 5 };

  it('is looked for in the domains of the search list first', async () => {
    const { find, asked } = await resolving(
      {
        'api.payments.svc.cluster.local': { addresses: ['10.96.0.7'] },
        'api.payments': { addresses: ['192.0.2.66'] },
      },
      { searchList },
    );
    expect(await find('api.payments')).toEqual(['10.96.0.7']);
    expect(asked).not.toContain('A api.payments');
  });

  it('stands for itself if no domain has it, also if a server refuses', async () => {
    const { find } = await resolving(
      {
        [`${API}.shop.svc.cluster.local`]: { rcode: 'SERVFAIL' },
        [API]: { addresses: ['192.0.2.1'] },
      },
      { searchList },
    );
    expect(await find(API)).toEqual(['192.0.2.1']);
  });

  it('is an error if a server does not answer: the next name could be another host', async () => {
    const { find } = await resolving(
      { [`${API}.shop.svc.cluster.local`]: { silent: true }, [API]: { addresses: ['192.0.2.1'] } },
      { searchList },
    );
    await expect(find(API)).rejects.toMatchObject({ code: 'EAI_AGAIN' });
  });
});

describe('an answer', () => {
  it('is kept for its time to live, and asked for once at a time', async () => {
    const { find, asked, clock, records } = await resolving({ [API]: { addresses: ['192.0.2.1'], ttl: 30 } });
    await Promise.all([find(API), find(API), find(API)]);
    await clock.advance(29_999);
    await find(API);
    expect(asked).toHaveLength(2);
    records.set(API, { addresses: ['192.0.2.2'] });
    await clock.advance(1);
    expect(await find(API)).toEqual(['192.0.2.2']);
  });

  it('is kept no longer than the name that led to it', async () => {
    const { find, asked, clock } = await resolving({
      [API]: { cname: 'edge.example.net', ttl: 5 },
      'edge.example.net': { addresses: ['192.0.2.7'], ttl: 600 },
    });
    await find(API);
    await clock.advance(5000);
    await find(API);
    expect(asked).toHaveLength(4);
  });

  it('without a time to live, or a long one, is not believed for long', async () => {
    const { find, asked, clock } = await resolving({
      'now.example.com': { addresses: ['192.0.2.1'], ttl: 0 },
      [API]: { addresses: ['192.0.2.1'], ttl: 86_400 },
    });
    await find('now.example.com');
    await find('now.example.com');
    expect(asked).toHaveLength(4);
    await find(API);
    await clock.advance(MAX_KEPT_MS);
    await find(API);
    expect(asked).toHaveLength(8);
  });

  it.each([
    ['A', 'SERVFAIL', { rcode: 'SERVFAIL' }, '2001:db8::1'],
    ['AAAA', 'SERVFAIL', { rcode: 'SERVFAIL' }, '192.0.2.1'],
    ['A', 'silence', { silent: true }, '2001:db8::1'],
  ] as const)('of which %s was met by %s is used, and kept for a second', async (only, _, failure, first) => {
    const addresses = ['192.0.2.1', '2001:db8::1'];
    const record = { addresses, ttl: 300 };
    const { find, asked, clock, records } = await resolving({ [API]: { ...record, ...failure, only } });
    expect(await find(API)).toEqual([first]);
    records.set(API, record);
    await clock.advance(MAX_HALF_KEPT_MS - 1);
    expect(await find(API)).toEqual([first]);
    expect(asked).toHaveLength(2);
    await clock.advance(1);
    expect(await find(API)).toEqual(addresses);
    await clock.advance(MAX_HALF_KEPT_MS);
    await find(API);
    expect(asked).toHaveLength(4);
  });

  it('that a family has no address is kept, too', async () => {
    const { find, asked, clock } = await resolving({ [API]: { addresses: ['192.0.2.1'], ttl: 300 } });
    await find(API);
    await clock.advance(MAX_KEPT_MS - 1);
    await find(API);
    expect(asked).toHaveLength(2);
  });

  it('that is a failure is not kept', async () => {
    const { find, records } = await resolving({});
    await expect(find(API)).rejects.toThrow(API);
    records.set(API, { addresses: ['192.0.2.1'] });
    expect(await find(API)).toEqual(['192.0.2.1']);
  });

  it('is forgotten if too many came after it', async () => {
    const names = Array.from({ length: MAX_KEPT + 1 }, (_, index) => `n${index}.example.com`);
    const { find, asked } = await resolving(
      Object.fromEntries(names.map((name) => [name, { addresses: ['192.0.2.1'], ttl: 60 }])),
    );
    for (const name of names) await find(name);
    await find(names.at(-1) as string);
    expect(asked).toHaveLength(names.length * 2);
    await find(names[0] as string);
    expect(asked).toHaveLength(names.length * 2 + 2);
  });
});

it('names that are not captured are looked up as usual', async () => {
  const { lookup, asked } = await resolving({ [API]: { addresses: ['192.0.2.1'] } });
  const both = exceptFor(new Set([API]), lookup);
  const found = (name: string) =>
    new Promise((resolve) => both(name, { all: false, family: 4 }, (_, address) => resolve(address)));
  expect(await found('localhost')).toBe('127.0.0.1');
  expect(asked).toEqual([]);
  expect(await found('API.example.com')).toBe('192.0.2.1');
});
