/**
 * When to renew and retry: durations in ms, random numbers in [0, 1). `token-state.ts` chooses which duration applies, and bounds
 * what a rotation, a 401 or the button may ask. Defaults are in `src/config/renewal.ts` and `src/broker/brokered-tokens.ts`;
 * docs/capacity.md shows the effect on a fleet.
 */

import type { RenewalPolicy } from '../config/renewal.ts';
import { elapsedMs, type Instant } from '../platform/time/clock.ts';

/**
 * A fraction of the lifetime minus jitter, leaving at least min(30 s, 20 % of the lifetime), and never below the policy's floor.
 */
export function renewalDelayMs(lifetimeMs: number, policy: RenewalPolicy, random: number): number {
  return Math.max(
    shortestRenewalMs(policy),
    latestRenewalMs(lifetimeMs, policy) - lifetimeMs * policy.jitter * random,
  );
}

/**
 * After a moment that others share, such as a rollout. Anywhere in the wait except its first quarter, since a small jitter would
 * keep a fleet in step.
 */
export function spreadRenewalDelayMs(lifetimeMs: number, policy: RenewalPolicy, random: number): number {
  const latest = latestRenewalMs(lifetimeMs, policy);
  const earliest = Math.max(shortestRenewalMs(policy), latest / 4);
  return Math.max(earliest, latest - (latest - earliest) * random);
}

/** The least of `renewalDelayMs`: until then a token of another process is worth taking. */
export function earliestRenewalMs(lifetimeMs: number, policy: RenewalPolicy): number {
  // The policy's floor may lie past the token's end.
  return Math.max(0, latestRenewalMs(lifetimeMs, policy) - lifetimeMs * policy.jitter);
}

/** Between planned grants, whatever the policy and the lifetime say. */
const MIN_INTERVAL_MS = 250;

function shortestRenewalMs({ minIntervalMs }: RenewalPolicy): number {
  return Math.max(MIN_INTERVAL_MS, minIntervalMs);
}

function latestRenewalMs(lifetimeMs: number, policy: RenewalPolicy): number {
  const sendable = sendableMs(lifetimeMs);
  // For a lifetime of seconds, a provider's answer may take longer than the last fifth.
  return Math.min(lifetimeMs * policy.at, sendable * 0.9, lifetimeMs - leftToRenewMs(lifetimeMs));
}

/** What is left of a token at its latest renewal. */
export function leftToRenewMs(lifetimeMs: number): number {
  return Math.min(30_000, lifetimeMs * 0.2);
}

/** Below this, a token that was given again is asked for right at its end. */
const LAST_STRETCH_MS = 5000;

/** At that request the old token may no longer be sent. Callers wait longer for a planned grant. */
const PAST_SENDABLE_MS = 900;

/** For the held token, given again. Some providers replace it before its end, others only then. */
export function sameTokenDelayMs(lifetimeMs: number, policy: RenewalPolicy, random: number): number {
  if (lifetimeMs > LAST_STRETCH_MS) return renewalDelayMs(lifetimeMs, policy, random);
  return Math.max(MIN_INTERVAL_MS, Math.min(lifetimeMs, surelySendableMs(lifetimeMs) + PAST_SENDABLE_MS));
}

/** The wait after an answer that the held token has ended: its last second is over after two. */
export const ENDED_TOKEN_DELAY_MS = 500;

/** How far from its end a provider may say that a token has ended. Covers clocks and a request's time. */
const AROUND_END_MS = 5000;

export function isAboutToEnd(expiresAt: Instant, now: Instant): boolean {
  return Math.abs(elapsedMs(expiresAt, now)) <= AROUND_END_MS;
}

/** Providers count from the beginning of the request's second (RFC 7519 §2, NumericDate). */
const WHOLE_SECOND_MS = 1000;

/** From reading a token to the upstream's check of its expiry. */
const TRANSIT = { longestMs: 250, ofLifetime: 0.1 };

/**
 * How long a token may be sent: until anybody may see it as expired. At least a fifth of the lifetime, so that tokens of about a
 * second are usable.
 */
export function sendableMs(lifetimeMs: number): number {
  return Math.max(lifetimeMs * 0.2, surelySendableMs(lifetimeMs));
}

/** Without that fifth, for a token that has been used. */
export function surelySendableMs(lifetimeMs: number): number {
  const transitMs = Math.min(TRANSIT.longestMs, lifetimeMs * TRANSIT.ofLifetime);
  return Math.max(0, lifetimeMs - WHOLE_SECOND_MS - transitMs);
}

/** A provider that restarts should be asked again within seconds. */
const INITIAL_BACKOFF_MS = 1000;

/** While a token is held, a retry only has to come before it expires. */
const HELD_BACKOFF = { factor: 4, longestMs: 600_000 };

/**
 * Providers lock out clients that retry rejected credentials. But a Secret and its provider seldom change at one moment, so several
 * retries fit into a held token's life.
 */
const REJECTED_BACKOFF = { firstMs: 30_000, longestMs: 600_000 };
const REJECTED_WITH_TOKEN = { firstMs: 10_000, ofHeld: 1 / 3, leastMs: 20_000 };

/** A longer Retry-After is cut to this. */
const MAX_RETRY_AFTER_MS = 600_000;

export interface FailedAttempt {
  /** With this one; 1 or more. */
  readonly consecutiveFailures: number;
  readonly rejected: boolean;
  /** The previous credentials were rejected, too. */
  readonly previousRejected?: boolean;
  readonly retryAfterMs?: number | undefined;
  /** 0 if no token may be sent. */
  readonly heldForMs: number;
  /** Of the last token, or the expected one. */
  readonly lifetimeMs: number;
  /** A time-out must not lengthen the recovery. */
  readonly tookMs: number;
  /** Between attempts while no token is held. */
  readonly recoveryMs: number;
  /** 0 by default. */
  readonly shortestRetryMs?: number | undefined;
}

/**
 * Without a token it doubles from 1 s to `recoveryMs` between attempts; with one it grows fourfold, if possible not past the
 * token's end. For rejected credentials it doubles from 30 s to 10 min; with a token from 10 s to a third of what is left.
 */
export function backoffBoundMs(failure: FailedAttempt): number {
  const { consecutiveFailures, rejected, previousRejected, heldForMs } = failure;
  // The provider may just have switched credentials.
  if (previousRejected && heldForMs > 0) return INITIAL_BACKOFF_MS;
  const grown = (firstMs: number, factor: number) =>
    firstMs * factor ** Math.min(consecutiveFailures - 1, 30);
  if (rejected && heldForMs === 0) {
    return Math.min(REJECTED_BACKOFF.longestMs, grown(REJECTED_BACKOFF.firstMs, 2));
  }
  if (rejected) {
    const { firstMs, ofHeld, leastMs } = REJECTED_WITH_TOKEN;
    const longestMs = Math.min(REJECTED_BACKOFF.longestMs, Math.max(leastMs, heldForMs * ofHeld));
    return Math.min(longestMs, grown(firstMs, 2));
  }
  const longestMs = Math.max(INITIAL_BACKOFF_MS, failure.recoveryMs - failure.tookMs);
  const urgentMs = Math.min(longestMs, grown(INITIAL_BACKOFF_MS, 2));
  const relaxedMs = Math.min(HELD_BACKOFF.longestMs, grown(INITIAL_BACKOFF_MS, HELD_BACKOFF.factor));
  return Math.max(urgentMs, Math.min(relaxedMs, heldForMs));
}

/**
 * Half is fixed, so that grants per minute can be counted; half is random, so that a fleet spreads. Retry-After and
 * `shortestRetryMs` are lower bounds.
 */
export function retryDelayMs(failure: FailedAttempt, random: number): number {
  const backoff = backoffBoundMs(failure) * (0.5 + 0.5 * random);
  const asked = Math.min(failure.retryAfterMs ?? 0, MAX_RETRY_AFTER_MS);
  // A fleet that was given one moment must not arrive at once.
  return Math.max(backoff, asked + asked * 0.1 * random, failure.shortestRetryMs ?? 0);
}

/** Room for one request before the held token ends. */
const LAST_CHANCE = { ofLifetime: 0.1, longestMs: 15_000 };

/** When to try the previous credentials: at random a little before the held token expires, or soon without one. */
export function lastChanceDelayMs(failure: FailedAttempt, random: number): number {
  const { heldForMs, lifetimeMs, retryAfterMs = 0, shortestRetryMs = 0 } = failure;
  const margin = Math.min(LAST_CHANCE.longestMs, lifetimeMs * LAST_CHANCE.ofLifetime);
  const shortestMs = Math.max(MIN_INTERVAL_MS, shortestRetryMs);
  const delay = Math.max(shortestMs, heldForMs - margin * (1 - 0.3 * random));
  return Math.max(delay, Math.min(retryAfterMs, MAX_RETRY_AFTER_MS));
}
