/**
 * Limits wrong attempts to authenticate. A client that is verified at once never comes here, so these limits lock out
 * none, even if it shares an address or a client id with a flood.
 */

import { isIPv6 } from 'node:net';
import { type Rate, TokenBuckets } from '../platform/limits/token-bucket.ts';
import type { Clock } from '../platform/time/clock.ts';
import { sha256 } from './clients.ts';

interface AttemptLimits {
  /**
   * Requests an attempt in the name of `clientId`, registered or not.
   * @returns the attempt or, if there were too many, in how many seconds to retry.
   */
  begin(address: string, clientId: string): Attempt | { readonly retryAfterSeconds: number };
  /** The same for a request that waits for the outcome of an attempt already begun with the same field. */
  join(address: string): Attempt | { readonly retryAfterSeconds: number };
}

/**
 * Counts against the client id at that address from its beginning, and against the address once it has failed. A joined
 * attempt counts against a limit of its own from its beginning.
 */
interface Attempt {
  failed(): void;
  /** It was right, or never judged: it no longer counts. */
  forgiven(): void;
}

const OF_CLIENT: Rate = { burst: 10, perSecond: 1 };
/** Many clients share a gateway's address; but a scan for client ids also comes from one. */
const OF_ADDRESS: Rate = { burst: 100, perSecond: 10 };
/** Joining costs no derivation, but waits as long as a wrong secret does. Rollouts behind a gateway join. */
const OF_JOINERS: Rate = { burst: 256, perSecond: 10 };

/** Of each kind; beyond that the least recently used is forgotten. */
const MAX_KEPT = 4096;

export function createAttemptLimits(clock: Clock): AttemptLimits {
  const clients = new TokenBuckets(OF_CLIENT, MAX_KEPT);
  const addresses = new TokenBuckets(OF_ADDRESS, MAX_KEPT);
  const joiners = new TokenBuckets(OF_JOINERS, MAX_KEPT);
  return {
    begin(address, clientId) {
      const network = networkOf(address);
      // Ids may be long, but what is kept must be short.
      const client = `${network} ${sha256(clientId).toString('base64')}`;
      const nowMs = clock.monotonicMs();
      const waitMs = Math.max(addresses.waitMs(network, nowMs), clients.waitMs(client, nowMs));
      if (waitMs > 0) return { retryAfterSeconds: Math.ceil(waitMs / 1000) };
      clients.charge(client, nowMs);
      return {
        failed: () => addresses.charge(network, clock.monotonicMs()),
        forgiven: () => clients.refund(client, clock.monotonicMs()),
      };
    },
    join(address) {
      const network = networkOf(address);
      const nowMs = clock.monotonicMs();
      const waitMs = joiners.waitMs(network, nowMs);
      if (waitMs > 0) return { retryAfterSeconds: Math.ceil(waitMs / 1000) };
      joiners.charge(network, nowMs);
      return {
        failed: () => undefined,
        forgiven: () => joiners.refund(network, clock.monotonicMs()),
      };
    },
  };
}

/** An IPv4 address, or the /64 of an IPv6 address, all of which one host may have. */
export function networkOf(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  if (!isIPv6(address)) return address;
  // An address without `::` gets it at its end, where it stands for no group.
  const whole = `${address.replace(/%.*$/, '').toLowerCase()}::`;
  const [head, tail] = whole.split('::').map(groupsOf) as [string[], string[]];
  const zeros = Array<string>(8 - head.length - tail.length).fill('0');
  return `${[...head, ...zeros, ...tail].slice(0, 4).join(':')}::/64`;
}

function groupsOf(half: string): string[] {
  return half === '' ? [] : half.split(':');
}
