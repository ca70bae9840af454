/** When to renew and when to try again: arithmetic on durations in ms and random numbers in [0, 1). */

import type { RenewalPolicy } from '../config/config.ts';

/**
 * How long after the request for a token was sent to renew it: a fraction of its lifetime minus jitter, leaving at
 * least min(30 s, 20 % of the lifetime), and never sooner than the policy's floor, even if the token ends before.
 */
export function renewalDelayMs(lifetimeMs: number, policy: RenewalPolicy, random: number): number {
  const planned = lifetimeMs * (policy.at - policy.jitter * random);
  const latest = lifetimeMs - Math.min(30_000, lifetimeMs * 0.2);
  return Math.max(policy.minIntervalMs, Math.min(planned, latest));
}

/** Ordinary trouble: a provider that restarts should find us waiting seconds, not minutes. */
const BACKOFF = { firstMs: 1000, longestMs: 60_000 };

/** Rejected credentials do not heal by asking: providers tar-pit and lock clients that try. */
const REJECTED_BACKOFF = { firstMs: 30_000, longestMs: 600_000 };

/** A provider that asks for more than this is asked again all the same. */
export const LONGEST_RETRY_AFTER_MS = 600_000;

/** No retry sooner than this after a failure, however small the random number. */
export const SHORTEST_RETRY_MS = 250;

export interface FailedAttempt {
  /** Failures in a row, this one included; 1 or more. */
  readonly consecutiveFailures: number;
  readonly rejected: boolean;
  readonly retryAfterMs?: number;
}

/**
 * How long to wait before the next grant: exponential with full jitter (a random part of a bound that doubles), from
 * 1 s to 60 s; for rejected credentials from 30 s to 10 min, half of it fixed. Retry-After is a lower bound.
 */
export function retryDelayMs(failure: FailedAttempt, random: number): number {
  const { firstMs, longestMs } = failure.rejected ? REJECTED_BACKOFF : BACKOFF;
  const bound = Math.min(longestMs, firstMs * 2 ** Math.min(failure.consecutiveFailures - 1, 30));
  const backoff = failure.rejected ? bound * (0.5 + 0.5 * random) : bound * random;
  const asked = Math.min(failure.retryAfterMs ?? 0, LONGEST_RETRY_AFTER_MS);
  // A fleet that was told the same moment must not arrive at the same moment.
  const spread = asked === 0 ? 0 : asked * 0.1 * random;
  return Math.max(SHORTEST_RETRY_MS, backoff, asked + spread);
}

/** How soon an upstream's 401 may force another renewal, after `futile` renewals in a row that it refused too. */
export function refusalCooldownMs(futile: number): number {
  return Math.min(600_000, 30_000 * 2 ** Math.min(futile, 30));
}
