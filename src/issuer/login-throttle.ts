/** Limits wrong attempts. Clients that are verified at once never come here, so a flood locks none of them out. */

import { isIPv6 } from 'node:net';
import { type Rate, TokenBuckets } from '../platform/limits/token-bucket.ts';
import type { Clock } from '../platform/time/clock.ts';
import { sha256 } from './clients.ts';

interface LoginThrottle {
  /** @returns the attempt or, if there were too many, in how many seconds to retry. */
  begin(address: string, clientId: string): Attempt | { readonly retryAfterSeconds: number };
  /** For a request that waits for an attempt with the same field. */
  join(address: string): Attempt | { readonly retryAfterSeconds: number };
}

/**
 * Counts against the client id at that address and, once failed, against the address. A joined attempt has its own
 * limit.
 */
interface Attempt {
  failed(): void;
  /** It no longer counts. */
  forgiven(): void;
}

const OF_CLIENT: Rate = { burst: 10, perSecond: 1 };
/** All clients behind a gateway share one address. */
const OF_ADDRESS: Rate = { burst: 100, perSecond: 10 };
/** Rollouts behind a gateway join. */
const OF_JOINERS: Rate = { burst: 256, perSecond: 10 };

/** Of each kind, the least recently used is dropped. */
const MAX_KEPT = 4096;

export function createLoginThrottle(clock: Clock): LoginThrottle {
  const clients = new TokenBuckets(OF_CLIENT, MAX_KEPT);
  const addresses = new TokenBuckets(OF_ADDRESS, MAX_KEPT);
  const joiners = new TokenBuckets(OF_JOINERS, MAX_KEPT);
  return {
    begin(address, clientId) {
      const network = networkOf(address);
      // An id may be long, its hash is short.
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

/** One host may have the whole /64 of an IPv6 address. */
export function networkOf(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  if (!isIPv6(address)) return address;
  const whole = `${address.replace(/%.*$/, '').toLowerCase()}::`;
  const [head, tail] = whole.split('::').map(groupsOf) as [string[], string[]];
  const zeros = Array<string>(8 - head.length - tail.length).fill('0');
  return `${[...head, ...zeros, ...tail].slice(0, 4).join(':')}::/64`;
}

function groupsOf(half: string): string[] {
  return half === '' ? [] : half.split(':');
}
