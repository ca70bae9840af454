import { lookup, Resolver } from 'node:dns';
import { readFile } from 'node:fs/promises';
import type { LookupFunction } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { Clock } from '../clock.ts';
import { dnsLookup } from './dns-lookup.ts';
import { readSearchList } from './search-list.ts';

const RESOLV_CONF = '/etc/resolv.conf';

/**
 * A `lookup` for sockets that uses only DNS for these names, which the pod's hosts file sends to this program; others
 * are looked up as usual.
 * @param names in lower case.
 * @throws {Error} the system's, if resolv.conf cannot be read.
 */
export async function lookupPastHostsFile(names: ReadonlySet<string>, clock: Clock): Promise<LookupFunction> {
  const byDns = dnsLookup({
    resolver: new Resolver(),
    searchList: readSearchList(await readFile(RESOLV_CONF, 'utf8')),
    clock,
    preferred: () => (reachesIPv6() ? 6 : 4),
  });
  return exceptFor(names, byDns);
}

/** The system's `lookup` for all but these names. */
export function exceptFor(names: ReadonlySet<string>, byDns: LookupFunction): LookupFunction {
  return (hostname, options, callback) => {
    const find = names.has(hostname.toLowerCase()) ? byDns : (lookup as LookupFunction);
    find(hostname, options, callback);
  };
}

/** Whether IPv6 leads anywhere from here (RFC 6724 §5, rule 1): a pod without it would wait in vain. */
function reachesIPv6(): boolean {
  return Object.values(networkInterfaces())
    .flat()
    .some((address) => address?.family === 'IPv6' && !address.internal && address.scopeid === 0);
}
