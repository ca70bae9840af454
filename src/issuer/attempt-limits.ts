/**
 * Limits wrong attempts to authenticate. A client that is verified at once never comes here, so these limits lock out
 * none, even if it shares an address or a client id with a flood.
 */

import { isIPv6 } from 'node:net';
import type { Clock } from '../platform/time/clock.ts';
import { sha256 } from './clients.ts';

export interface AttemptLimits {
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
export interface Attempt {
  failed(): void;
  /** It was right, or never judged: it no longer counts. */
  forgiven(): void;
}

interface Allowance {
  /** Attempts at once, and seconds until one more is allowed. */
  readonly burst: number;
  readonly refillSeconds: number;
}

const OF_CLIENT: Allowance = { burst: 10, refillSeconds: 1 };
/** Many clients share a gateway's address; but a scan for client ids also comes from one. */
const OF_ADDRESS: Allowance = { burst: 100, refillSeconds: 0.1 };
/** Joining costs no derivation, but waits as long as a wrong secret does. Rollouts behind a gateway join. */
const OF_JOINERS: Allowance = { burst: 256, refillSeconds: 0.1 };

/** Of each kind; beyond that the least recently used is forgotten. */
const MAX_KEPT = 4096;

export function createAttemptLimits(clock: Clock): AttemptLimits {
  const clients = createBuckets(OF_CLIENT, clock);
  const addresses = createBuckets(OF_ADDRESS, clock);
  const joiners = createBuckets(OF_JOINERS, clock);
  return {
    begin(address, clientId) {
      const network = networkOf(address);
      // Ids may be long, but what is kept must be short.
      const client = `${network} ${sha256(clientId).toString('base64')}`;
      const retryAfterSeconds = Math.max(
        addresses.secondsUntilFree(network),
        clients.secondsUntilFree(client),
      );
      if (retryAfterSeconds > 0) return { retryAfterSeconds };
      clients.add(client, 1);
      return {
        failed: () => addresses.add(network, 1),
        forgiven: () => clients.add(client, -1),
      };
    },
    join(address) {
      const network = networkOf(address);
      const retryAfterSeconds = joiners.secondsUntilFree(network);
      if (retryAfterSeconds > 0) return { retryAfterSeconds };
      joiners.add(network, 1);
      return { failed: () => undefined, forgiven: () => joiners.add(network, -1) };
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

interface Bucket {
  /** Attempts that still count at `atMs`. */
  level: number;
  atMs: number;
}

/** Leaky buckets by name. */
function createBuckets({ burst, refillSeconds }: Allowance, clock: Clock) {
  /** Least recently filled first. */
  const buckets = new Map<string, Bucket>();

  function levelOf(name: string): number {
    const bucket = buckets.get(name);
    if (bucket === undefined) return 0;
    return Math.max(0, bucket.level - (clock.monotonicMs() - bucket.atMs) / 1000 / refillSeconds);
  }

  return {
    /** Whole seconds; 0 if there is room now. */
    secondsUntilFree(name: string): number {
      return Math.max(0, Math.ceil((levelOf(name) + 1 - burst) * refillSeconds));
    },
    add(name: string, count: number): void {
      const level = Math.max(0, levelOf(name) + count);
      buckets.delete(name);
      buckets.set(name, { level, atMs: clock.monotonicMs() });
      if (buckets.size > MAX_KEPT) buckets.delete(buckets.keys().next().value as string);
    },
  };
}
