/** Resolves names by DNS alone: the hosts file may lead a name back to this program. */

import { type LookupAddress, type LookupOptions, lookup, Resolver } from 'node:dns';
import { readFile } from 'node:fs/promises';
import type { LookupFunction } from 'node:net';
import { networkInterfaces } from 'node:os';
import { systemCodeOf } from '../errors.ts';
import { ExpiringMap } from '../limits/lru-map.ts';
import { ownLookup } from '../net/lookups.ts';
import { SingleFlight } from '../time/async.ts';
import type { Clock } from '../time/clock.ts';

const MAX_KEPT_MS = 300_000;

/** For names of which one family was answered: the other family's addresses may be the reachable ones. */
const MAX_HALF_KEPT_MS = 1000;

const MAX_KEPT = 128;

export interface DnsLookupOptions {
  readonly resolver: Pick<Resolver, 'resolve4' | 'resolve6'>;
  readonly searchList: SearchList;
  readonly clock: Clock;
  readonly preferred: () => 4 | 6;
}

interface Found {
  readonly addresses: readonly LookupAddress[];
  readonly keptForMs: number;
}

interface Answer {
  readonly addresses: readonly { readonly address: string; readonly ttl: number }[];
  /** The resolver's code; undefined if it answered, even without an address. */
  readonly failure: string | undefined;
}

const NOT_THERE: ReadonlySet<string> = new Set(['ENOTFOUND', 'ENODATA']);

/** As in the C library, the next name is tried. */
const UNWILLING: ReadonlySet<string> = new Set(['ESERVFAIL', 'EREFUSED', 'ENOTIMP', 'EFORMERR']);

/** A `lookup` for sockets. Concurrent requests for one name share their queries. */
export function dnsLookup(options: DnsLookupOptions): LookupFunction {
  const kept = new ExpiringMap<string, Found>(options.clock, MAX_KEPT);
  const asked = new SingleFlight<Found>();

  async function find(name: string): Promise<Found> {
    const known = kept.get(name);
    if (known !== undefined) return known;
    return await asked.run(name, async () => {
      const found = await resolve(name, options);
      kept.set(name, found, found.keptForMs);
      return found;
    });
  }

  return (hostname, lookupOptions, callback) => {
    find(hostname.toLowerCase()).then(
      ({ addresses }) => answer(hostname, addresses, lookupOptions, callback),
      (error: Error) => callback(error as NodeJS.ErrnoException, []),
    );
  };
}

function answer(
  hostname: string,
  addresses: readonly LookupAddress[],
  { all, family }: LookupOptions,
  callback: Parameters<LookupFunction>[2],
): void {
  const wanted = family === 4 || family === 'IPv4' ? 4 : family === 6 || family === 'IPv6' ? 6 : undefined;
  const usable = addresses.filter((one) => wanted === undefined || one.family === wanted);
  const [first] = usable;
  // In a later turn, so that what the callback throws is not caught here.
  process.nextTick(() => {
    if (first === undefined) callback(failure(hostname, 'ENOTFOUND'), []);
    else if (all === true) callback(null, [...usable]);
    else callback(null, first.address, first.family);
  });
}

/** @throws {Error} `ENOTFOUND` if no candidate has an address, `EAI_AGAIN` if that is not known. */
async function resolve(name: string, options: DnsLookupOptions): Promise<Found> {
  let unwilling: string | undefined;
  for (const candidate of candidatesFor(name, options.searchList)) {
    const [four, six] = await Promise.all([
      ask('resolve4', candidate, options),
      ask('resolve6', candidate, options),
    ]);
    const found = ordered(four, six, options.preferred());
    const failures = [four.failure, six.failure].filter((code) => code !== undefined);
    if (found.length > 0) {
      const longestMs = failures.length > 0 ? MAX_HALF_KEPT_MS : MAX_KEPT_MS;
      return keptFor(found, longestMs);
    }
    const final = failures.find((code) => !UNWILLING.has(code));
    if (final !== undefined) throw failure(name, final);
    unwilling ??= failures[0];
  }
  throw failure(name, unwilling ?? 'ENOTFOUND');
}

function ask(
  question: 'resolve4' | 'resolve6',
  name: string,
  { resolver }: DnsLookupOptions,
): Promise<Answer> {
  return new Promise((settle) => {
    resolver[question](name, { ttl: true }, (error, addresses) => {
      const code = error === null ? undefined : (systemCodeOf(error) ?? 'EBADRESP');
      settle({
        addresses: error === null ? addresses : [],
        failure: code === undefined || NOT_THERE.has(code) ? undefined : code,
      });
    });
  });
}

type Family = 4 | 6;
type Timed = LookupAddress & { readonly ttl: number };

function ordered(four: Answer, six: Answer, preferred: Family): readonly Timed[] {
  const of = (answer: Answer, family: Family): Timed[] =>
    answer.addresses.map(({ address, ttl }) => ({ address, ttl, family }));
  return preferred === 4 ? [...of(four, 4), ...of(six, 6)] : [...of(six, 6), ...of(four, 4)];
}

function keptFor(found: readonly Timed[], longestMs: number): Found {
  const lifetimeMs = Math.min(...found.map(({ ttl }) => ttl)) * 1000;
  return {
    addresses: found.map(({ address, family }) => ({ address, family })),
    keptForMs: Math.min(lifetimeMs, longestMs),
  };
}

/** With the C library's codes: the resolver's ECONNREFUSED would seem to be the host's. */
function failure(name: string, found: string): NodeJS.ErrnoException {
  const [code, words] = NOT_THERE.has(found)
    ? ['ENOTFOUND', `DNS has no address for ${name}`]
    : ['EAI_AGAIN', `no name server says where ${name} is`];
  return Object.assign(new Error(`${words}: ${found}`), { code, hostname: name });
}

/** See resolv.conf(5). */
interface SearchList {
  readonly domains: readonly string[];
  /** A name with this many dots is tried unchanged first. */
  readonly ndots: number;
}

const MAX_DOMAINS = 32;

/** The C library's limit. */
const MAX_DOTS = 15;

/** If several `search` or `domain` lines are there, the last one counts. */
export function readSearchList(text: string): SearchList {
  let domains: readonly string[] = [];
  let ndots = 1;
  for (const line of text.split('\n')) {
    const [keyword, ...words] = line
      .replace(/[#;].*$/, '')
      .split(/\s+/)
      .filter((word) => word !== '');
    if (keyword === 'search') domains = words.slice(0, MAX_DOMAINS);
    else if (keyword === 'domain') domains = words.slice(0, 1);
    else if (keyword === 'options') ndots = dotsIn(words) ?? ndots;
  }
  return {
    domains: domains.map((domain) => domain.replace(/\.$/, '')).filter((domain) => domain !== ''),
    ndots,
  };
}

function dotsIn(options: readonly string[]): number | undefined {
  const [, digits] =
    /^ndots:(\d{1,3})$/.exec(options.findLast((option) => option.startsWith('ndots:')) ?? '') ?? [];
  return digits === undefined ? undefined : Math.min(Number(digits), MAX_DOTS);
}

/** The names to query until one has an address. */
export function candidatesFor(name: string, { domains, ndots }: SearchList): readonly string[] {
  if (name.endsWith('.')) return [name.slice(0, -1)];
  const searched = domains.map((domain) => `${name}.${domain}`);
  const dots = name.split('.').length - 1;
  return dots >= ndots ? [name, ...searched] : [...searched, name];
}

const RESOLV_CONF = '/etc/resolv.conf';

export interface Lookups {
  /** Found by DNS alone; lower case. */
  readonly names: ReadonlySet<string>;
  readonly ofUpstreams: LookupFunction;
  readonly own: LookupFunction;
}

/**
 * Uses DNS alone for names that the pod's hosts file sends to this program.
 * @param names in lower case.
 * @throws {Error} the system's, if resolv.conf cannot be read.
 */
export async function lookupsPastHostsFile(names: ReadonlySet<string>, clock: Clock): Promise<Lookups> {
  const byDns = dnsLookup({
    resolver: new Resolver(),
    searchList: readSearchList(await readFile(RESOLV_CONF, 'utf8')),
    clock,
    preferred: () => (reachesIPv6() ? 6 : 4),
  });
  return { names, ofUpstreams: exceptFor(names, byDns), own: exceptFor(names, byDns, ownLookup) };
}

export function exceptFor(
  names: ReadonlySet<string>,
  byDns: LookupFunction,
  others: LookupFunction = lookup as LookupFunction,
): LookupFunction {
  return (hostname, options, callback) => {
    const find = names.has(hostname.toLowerCase()) ? byDns : others;
    find(hostname, options, callback);
  };
}

/** A pod without IPv6 would wait in vain (RFC 6724 §5, rule 1). */
function reachesIPv6(): boolean {
  return Object.values(networkInterfaces())
    .flat()
    .some((address) => address?.family === 'IPv6' && !address.internal && address.scopeid === 0);
}
