/**
 * When to renew and when to try again: arithmetic on durations in ms and random numbers in [0, 1). What these rules
 * mean for a whole fleet is in docs/capacity.md.
 */

import type { RenewalPolicy } from '../config/config.ts';

/**
 * How long after the request for a token was sent to renew it: a fraction of its lifetime minus jitter, leaving at
 * least min(30 s, 20 % of the lifetime), and never sooner than the policy's floor, even if the token ends before.
 */
export function renewalDelayMs(lifetimeMs: number, policy: RenewalPolicy, random: number): number {
  return Math.max(
    policy.minIntervalMs,
    latestRenewalMs(lifetimeMs, policy) - lifetimeMs * policy.jitter * random,
  );
}

/**
 * The same after a grant whose moment was not the engine's choice: a rollout, a rotation, a revocation, the end of an
 * outage line up a whole fleet, and jitter of a tenth would keep it in step for many rounds. So it is renewed at any
 * moment of the wait but its first quarter, in which others of the fleet may still be coming back.
 */
export function spreadRenewalDelayMs(lifetimeMs: number, policy: RenewalPolicy, random: number): number {
  const latest = latestRenewalMs(lifetimeMs, policy);
  const earliest = Math.max(policy.minIntervalMs, latest / 4);
  return Math.max(earliest, latest - (latest - earliest) * random);
}

function latestRenewalMs(lifetimeMs: number, policy: RenewalPolicy): number {
  return Math.min(lifetimeMs * policy.at, lifetimeMs - Math.min(30_000, lifetimeMs * 0.2));
}

/**
 * How long after the request for a token was sent to send it: not to the end of its lifetime, because providers count
 * in whole seconds from one that had begun before the request came (RFC 7519 §2, NumericDate). The last second may be
 * over for the upstream; of a very short lifetime it is the last fifth, which no renewal is planned in.
 */
export function sendableMs(lifetimeMs: number): number {
  return lifetimeMs - Math.min(1000, lifetimeMs * 0.2);
}

/** Ordinary trouble: a provider that restarts should find us waiting seconds, not minutes. */
const FIRST_BACKOFF_MS = 1000;

/**
 * While no token is held. The longest step is a part of the lifetime, within bounds: when an outage ends the whole
 * fleet comes back within one step, so a step that is short beside a renewal period is a peak above the usual load.
 */
const URGENT_BACKOFF = { ofLifetime: 0.4, leastMs: 60_000, mostMs: 120_000 };

/** While one is held there is no hurry but to try again before it ends. */
const HELD_BACKOFF = { factor: 4, longestMs: 600_000 };

/** Rejected credentials do not heal by asking: providers tar-pit and lock clients that try. */
const REJECTED_BACKOFF = { firstMs: 30_000, longestMs: 600_000 };

/** A provider that asks for more than this is asked again all the same. */
const LONGEST_RETRY_AFTER_MS = 600_000;

export interface FailedAttempt {
  /** Failures in a row, this one included; 1 or more. */
  readonly consecutiveFailures: number;
  readonly rejected: boolean;
  readonly retryAfterMs?: number;
  /** What is left of the token in hand; 0 when there is none that may be sent. */
  readonly heldForMs: number;
  /** Lifetime of the last token, or what a token is expected to live. */
  readonly lifetimeMs: number;
}

/**
 * The bound on the wait before the next grant, Retry-After aside. Without a token it doubles from 1 s at each failure;
 * with one it grows fourfold, though not past the token's end unless it would without; for rejected credentials it
 * doubles from 30 s to 10 min.
 */
export function backoffBoundMs(failure: FailedAttempt): number {
  const { consecutiveFailures, rejected, heldForMs, lifetimeMs } = failure;
  const grown = (firstMs: number, factor: number) =>
    firstMs * factor ** Math.min(consecutiveFailures - 1, 30);
  if (rejected) return Math.min(REJECTED_BACKOFF.longestMs, grown(REJECTED_BACKOFF.firstMs, 2));
  const { ofLifetime, leastMs, mostMs } = URGENT_BACKOFF;
  const longestMs = Math.min(mostMs, Math.max(leastMs, lifetimeMs * ofLifetime));
  const urgentMs = Math.min(longestMs, grown(FIRST_BACKOFF_MS, 2));
  if (heldForMs === 0) return urgentMs;
  const relaxedMs = Math.min(HELD_BACKOFF.longestMs, grown(FIRST_BACKOFF_MS, HELD_BACKOFF.factor));
  return Math.max(urgentMs, Math.min(relaxedMs, heldForMs));
}

/**
 * How long to wait before the next grant: half of `backoffBoundMs` for certain, so that the grants of any minute can
 * be counted beforehand, and up to the other half at random, so that a fleet spreads. Retry-After is a lower bound.
 */
export function retryDelayMs(failure: FailedAttempt, random: number): number {
  const backoff = backoffBoundMs(failure) * (0.5 + 0.5 * random);
  const asked = Math.min(failure.retryAfterMs ?? 0, LONGEST_RETRY_AFTER_MS);
  // A fleet that was told the same moment must not arrive at the same moment.
  const spread = asked === 0 ? 0 : asked * 0.1 * random;
  return Math.max(backoff, asked + spread);
}

/** How soon an upstream's 401 may force another renewal, after `futile` renewals in a row that it refused too. */
export function refusalCooldownMs(futile: number): number {
  return Math.min(600_000, 30_000 * 2 ** Math.min(futile, 30));
}
