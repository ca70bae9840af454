/**
 * The system's name lookups, which cannot be taken back and hold a thread for as long as name servers are silent. Upstreams have
 * their threads and everything else has its own, so that tokens never wait for the names of upstreams.
 */

import { lookup as systemLookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { lookupThreads } from '../process/thread-pool.ts';
import { type LookupBounds, SharedLookups } from './shared-lookups.ts';

/** Threads for the names of providers, collectors, the Kubernetes API and the token cache, and for those of upstreams. */
export function sharesOf(threads: number): { readonly own: LookupBounds; readonly upstreams: LookupBounds } {
  const own = Math.max(1, Math.floor(threads / 3));
  return { own: boundsWithin(own), upstreams: boundsWithin(Math.max(1, threads - own)) };
}

function boundsWithin(threads: number): LookupBounds {
  return { atOnce: threads, ofParty: 4, ofName: 2, late: Math.ceil(threads / 3) };
}

const SHARES = sharesOf(lookupThreads());

export const UPSTREAM_BOUNDS = SHARES.upstreams;

const own = new SharedLookups(systemLookup as LookupFunction, SHARES.own);

/** For every connection but those to upstreams. */
export const ownLookup: LookupFunction = (hostname, options, told) => void own.ask(hostname, options, told);
