import { lookup, Resolver } from 'node:dns';
import { readFile } from 'node:fs/promises';
import type { LookupFunction } from 'node:net';
import { networkInterfaces } from 'node:os';
import { ownLookup } from '../net/system-lookups.ts';
import type { Clock } from '../time/clock.ts';
import { dnsLookup } from './dns-lookup.ts';
import { readSearchList } from './search-list.ts';

const RESOLV_CONF = '/etc/resolv.conf';

export interface Lookups {
  /** For upstreams, whose connections bound what they ask of the system. */
  readonly ofUpstreams: LookupFunction;
  /** For everything else. */
  readonly own: LookupFunction;
}

/**
 * Lookups for sockets that use only DNS for these names, which the pod's hosts file sends to this program; others are looked
 * up as usual.
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
  return { ofUpstreams: exceptFor(names, byDns), own: exceptFor(names, byDns, ownLookup) };
}

/** The system's `lookup`, or another one, for all but these names. */
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

/** Whether IPv6 leads anywhere from here (RFC 6724 §5, rule 1): a pod without it would wait in vain. */
function reachesIPv6(): boolean {
  return Object.values(networkInterfaces())
    .flat()
    .some((address) => address?.family === 'IPv6' && !address.internal && address.scopeid === 0);
}
