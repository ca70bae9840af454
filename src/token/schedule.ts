/**
 * When to renew and when to retry: arithmetic on durations in ms and random numbers in [0, 1). Which rule
 * holds when is in `token-state.ts`, what is so by default in `src/config/renewal.ts` and, behind the broker, in
 * `src/broker/brokered-tokens.ts`. docs/capacity.md shows what these rules mean for a whole fleet.
 */

import type { RenewalPolicy } from '../config/renewal.ts';
import { elapsedMs, type Instant } from '../platform/time/clock.ts';

/**
 * How long after sending the request for a token to renew it: a fraction of its lifetime minus jitter, leaving at least
 * min(30 s, 20 % of the lifetime), and never sooner than the policy's floor, even if the token expires before.
 */
export function renewalDelayMs(lifetimeMs: number, policy: RenewalPolicy, random: number): number {
  return Math.max(
    shortestRenewalMs(policy),
    latestRenewalMs(lifetimeMs, policy) - lifetimeMs * policy.jitter * random,
  );
}

/**
 * The same after a grant whose moment was not the engine's choice: a rollout, a rotation, a revocation, or the end of
 * an outage lines up a whole fleet, and a jitter of a tenth would keep it in step for many rounds. So the renewal falls
 * anywhere in the wait except its first quarter, when others of the fleet may still be recovering.
 */
export function spreadRenewalDelayMs(lifetimeMs: number, policy: RenewalPolicy, random: number): number {
  const latest = latestRenewalMs(lifetimeMs, policy);
  const earliest = Math.max(shortestRenewalMs(policy), latest / 4);
  return Math.max(earliest, latest - (latest - earliest) * random);
}

/**
 * The soonest that `renewalDelayMs` comes to. Until then a token that another process requested is worth taking, for it
 * will not be renewed at once.
 */
export function earliestRenewalMs(lifetimeMs: number, policy: RenewalPolicy): number {
  // Without the policy's floor, which would leave nothing of a token that expires before it.
  return Math.max(0, latestRenewalMs(lifetimeMs, policy) - lifetimeMs * policy.jitter);
}

/** The engine never plans two grants closer together, whatever the policy and the lifetime say. */
const MIN_INTERVAL_MS = 250;

function shortestRenewalMs({ minIntervalMs }: RenewalPolicy): number {
  return Math.max(MIN_INTERVAL_MS, minIntervalMs);
}

function latestRenewalMs(lifetimeMs: number, policy: RenewalPolicy): number {
  const sendable = sendableMs(lifetimeMs);
  // With a lifetime of seconds, its last fifth is shorter than the provider may need to answer.
  return Math.min(lifetimeMs * policy.at, sendable * 0.9, lifetimeMs - leftToRenewMs(lifetimeMs));
}

/** What is left of a token when it is renewed at the latest. */
export function leftToRenewMs(lifetimeMs: number): number {
  return Math.min(30_000, lifetimeMs * 0.2);
}

/** Below this, a token that the provider gives again without a longer life is asked for once more right at its end. */
const LAST_STRETCH_MS = 5000;

/** From when such a token may no longer be sent to that request: less than callers wait for a planned one. */
const PAST_SENDABLE_MS = 900;

/**
 * As `renewalDelayMs`, for the token that is held already, given again without a longer life. Some providers replace it
 * a while before its end, and the usual times find that out; others give it until then.
 */
export function sameTokenDelayMs(lifetimeMs: number, policy: RenewalPolicy, random: number): number {
  if (lifetimeMs > LAST_STRETCH_MS) return renewalDelayMs(lifetimeMs, policy, random);
  return Math.max(MIN_INTERVAL_MS, Math.min(lifetimeMs, surelySendableMs(lifetimeMs) + PAST_SENDABLE_MS));
}

/** From an answer that says that the held token has ended to the next request: its last second is over after two. */
export const ENDED_TOKEN_DELAY_MS = 500;

/** Around a token's end, the provider may say that it has ended. By its clock and ours, and the time of a request. */
const AROUND_END_MS = 5000;

/** @param expiresAt of the token that is held. */
export function isAboutToEnd(expiresAt: Instant, now: Instant): boolean {
  return Math.abs(elapsedMs(expiresAt, now)) <= AROUND_END_MS;
}

/** Providers count in whole seconds, from one that began before the request came (RFC 7519 §2, NumericDate). */
const WHOLE_SECOND_MS = 1000;

/** What may pass between reading the token here and the upstream's check of its expiry. */
const TRANSIT = { longestMs: 250, ofLifetime: 0.1 };

/**
 * How long after its request a token may be sent: not to the end of its lifetime, but until the earliest moment at
 * which anybody may see it as expired. A lifetime of about a second leaves nothing; a fifth is used, so that the token
 * can be used at all.
 */
export function sendableMs(lifetimeMs: number): number {
  return Math.max(lifetimeMs * 0.2, surelySendableMs(lifetimeMs));
}

/** The same without that fifth: for a token that has been used. */
export function surelySendableMs(lifetimeMs: number): number {
  const transitMs = Math.min(TRANSIT.longestMs, lifetimeMs * TRANSIT.ofLifetime);
  return Math.max(0, lifetimeMs - WHOLE_SECOND_MS - transitMs);
}

/** For ordinary trouble: a provider that restarts should find us waiting seconds, not minutes. */
const FIRST_BACKOFF_MS = 1000;

/** While a token is held, a retry only has to come before it expires. */
const HELD_BACKOFF = { factor: 4, longestMs: 600_000 };

/**
 * Asking rarely heals rejected credentials, and providers tar-pit and lock out clients that try. But a Secret and its
 * provider are seldom changed in the same moment: while a token is held, several retries fit into its remaining life.
 */
const REJECTED_BACKOFF = { firstMs: 30_000, longestMs: 600_000 };
const REJECTED_WITH_TOKEN = { firstMs: 10_000, ofHeld: 1 / 3, leastMs: 20_000 };

/** A provider that asks for a longer wait is asked again after this one. */
const MAX_RETRY_AFTER_MS = 600_000;

export interface FailedAttempt {
  /** Failures in a row, this one included; 1 or more. */
  readonly consecutiveFailures: number;
  readonly rejected: boolean;
  /** The previous credentials were rejected, as the newest were before. */
  readonly previousRejected?: boolean;
  readonly retryAfterMs?: number | undefined;
  /** The remaining life of the held token; 0 if none may be sent. */
  readonly heldForMs: number;
  /** Lifetime of the last token, or the one expected of a token. */
  readonly lifetimeMs: number;
  /** How long the attempt took: a hanging provider's time-out must not lengthen the recovery. */
  readonly tookMs: number;
  /** The policy's longest step from one attempt to the next while no token is held. */
  readonly recoveryMs: number;
  /** The policy's shortest wait; 0 by default. */
  readonly shortestRetryMs?: number | undefined;
}

/**
 * The bound on the wait before the next grant, Retry-After aside. Without a token it doubles from 1 s at each failure,
 * up to the policy's `recoveryMs` from one attempt to the next; with one it grows fourfold, though not past the token's
 * end unless it would without. For rejected credentials it doubles from 30 s to 10 min; with a token from 10 s to a
 * third of what is left of it.
 */
export function backoffBoundMs(failure: FailedAttempt): number {
  const { consecutiveFailures, rejected, previousRejected, heldForMs } = failure;
  // The provider may just have switched credentials: the newest are worth a try before the token expires.
  if (previousRejected && heldForMs > 0) return FIRST_BACKOFF_MS;
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
  const longestMs = Math.max(FIRST_BACKOFF_MS, failure.recoveryMs - failure.tookMs);
  const urgentMs = Math.min(longestMs, grown(FIRST_BACKOFF_MS, 2));
  const relaxedMs = Math.min(HELD_BACKOFF.longestMs, grown(FIRST_BACKOFF_MS, HELD_BACKOFF.factor));
  return Math.max(urgentMs, Math.min(relaxedMs, heldForMs));
}

/**
 * How long to wait before the next grant: half of `backoffBoundMs` is fixed, so that the grants per minute can be
 * counted beforehand, and the other half is random, so that a fleet spreads. Retry-After and the policy's
 * `shortestRetryMs` are lower bounds.
 */
export function retryDelayMs(failure: FailedAttempt, random: number): number {
  const backoff = backoffBoundMs(failure) * (0.5 + 0.5 * random);
  const asked = Math.min(failure.retryAfterMs ?? 0, MAX_RETRY_AFTER_MS);
  // A fleet that was given the same moment must not arrive all at once.
  return Math.max(backoff, asked + asked * 0.1 * random, failure.shortestRetryMs ?? 0);
}

/** Before the end of a token whose successor is refused: room for one request with the previous credentials. */
const LAST_CHANCE = { ofLifetime: 0.1, longestMs: 15_000 };

/**
 * When to try the previous credentials, in ms from now: a little before the held token expires, at random so that a
 * fleet spreads, or soon if no token is held.
 */
export function lastChanceDelayMs(failure: FailedAttempt, random: number): number {
  const { heldForMs, lifetimeMs, retryAfterMs = 0, shortestRetryMs = 0 } = failure;
  const margin = Math.min(LAST_CHANCE.longestMs, lifetimeMs * LAST_CHANCE.ofLifetime);
  const shortestMs = Math.max(MIN_INTERVAL_MS, shortestRetryMs);
  const delay = Math.max(shortestMs, heldForMs - margin * (1 - 0.3 * random));
  return Math.max(delay, Math.min(retryAfterMs, MAX_RETRY_AFTER_MS));
}
