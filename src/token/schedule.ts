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
    shortestRenewalMs(policy),
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
  const earliest = Math.max(shortestRenewalMs(policy), latest / 4);
  return Math.max(earliest, latest - (latest - earliest) * random);
}

/**
 * The soonest that `renewalDelayMs` comes to: a token that another has asked for is worth taking before, for it will not be
 * renewed at once.
 */
export function earliestRenewalMs(lifetimeMs: number, policy: RenewalPolicy): number {
  // Without its floor: of a token that ends before it nothing would be left.
  return Math.max(0, latestRenewalMs(lifetimeMs, policy) - lifetimeMs * policy.jitter);
}

/** No plan of ours sends two grants closer together, whatever the policy and the lifetime say. */
export const SHORTEST_INTERVAL_MS = 250;

function shortestRenewalMs({ minIntervalMs }: RenewalPolicy): number {
  return Math.max(SHORTEST_INTERVAL_MS, minIntervalMs);
}

function latestRenewalMs(lifetimeMs: number, policy: RenewalPolicy): number {
  const sendable = sendableMs(lifetimeMs);
  // Of a lifetime of seconds the last fifth is longer over than the provider needs to answer.
  return Math.min(lifetimeMs * policy.at, sendable * 0.9, lifetimeMs - Math.min(30_000, lifetimeMs * 0.2));
}

/** Providers count in whole seconds, from one that had begun before the request came (RFC 7519 §2, NumericDate). */
const WHOLE_SECOND_MS = 1000;

/** What may pass between reading the token here and the upstream's look at its end. */
const TRANSIT = { longestMs: 250, ofLifetime: 0.1 };

/**
 * How long after the request for a token was sent to send it: not to the end of its lifetime, but to where it has ended
 * for nobody yet. A lifetime of a second or so has no such part; a fifth is used, so that it can be used at all.
 */
export function sendableMs(lifetimeMs: number): number {
  const transitMs = Math.min(TRANSIT.longestMs, lifetimeMs * TRANSIT.ofLifetime);
  return Math.max(lifetimeMs * 0.2, lifetimeMs - WHOLE_SECOND_MS - transitMs);
}

/** Ordinary trouble: a provider that restarts should find us waiting seconds, not minutes. */
const FIRST_BACKOFF_MS = 1000;

/** While one is held there is no hurry but to try again before it ends. */
const HELD_BACKOFF = { factor: 4, longestMs: 600_000 };

/**
 * Rejected credentials rarely heal by asking, and providers tar-pit and lock clients that try. But a Secret and its
 * provider are seldom changed in the same moment: while a token is held, several tries fit into what is left of it.
 */
const REJECTED_BACKOFF = { firstMs: 30_000, longestMs: 600_000 };
const REJECTED_WITH_TOKEN = { firstMs: 10_000, ofHeld: 1 / 3, leastMs: 20_000 };

/** A provider that asks for more than this is asked again all the same. */
const LONGEST_RETRY_AFTER_MS = 600_000;

export interface FailedAttempt {
  /** Failures in a row, this one included; 1 or more. */
  readonly consecutiveFailures: number;
  readonly rejected: boolean;
  /** What was rejected were the previous credentials, as the newest were before. */
  readonly previousRejected?: boolean;
  readonly retryAfterMs?: number | undefined;
  /** What is left of the token in hand; 0 when there is none that may be sent. */
  readonly heldForMs: number;
  /** Lifetime of the last token, or what a token is expected to live. */
  readonly lifetimeMs: number;
  /** How long the attempt took: a provider that hangs must not add its time-out to the way back. */
  readonly tookMs: number;
  /** The policy's longest step from one attempt to the next while no token is held. */
  readonly recoveryMs: number;
  /** The policy's shortest wait; 0 unless given. */
  readonly shortestRetryMs?: number | undefined;
}

/**
 * The bound on the wait before the next grant, Retry-After aside. Without a token it doubles from 1 s at each failure,
 * up to the policy's `recoveryMs` from one attempt to the next; with one it grows fourfold, though not past the token's end unless it would without. For rejected credentials it
 * doubles from 30 s to 10 min; with a token from 10 s to a third of what is left of it.
 */
export function backoffBoundMs(failure: FailedAttempt): number {
  const { consecutiveFailures, rejected, previousRejected, heldForMs } = failure;
  // The provider may have just changed sides: the newest are worth a try before the token ends.
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
 * How long to wait before the next grant: half of `backoffBoundMs` for certain, so that the grants of any minute can
 * be counted beforehand, and up to the other half at random, so that a fleet spreads. Retry-After is a lower bound, and so
 * is the policy's `shortestRetryMs`.
 */
export function retryDelayMs(failure: FailedAttempt, random: number): number {
  const backoff = backoffBoundMs(failure) * (0.5 + 0.5 * random);
  const asked = Math.min(failure.retryAfterMs ?? 0, LONGEST_RETRY_AFTER_MS);
  // A fleet that was told the same moment must not arrive at the same moment.
  return Math.max(backoff, asked + asked * 0.1 * random, failure.shortestRetryMs ?? 0);
}

/** Before the end of a token whose successor is refused: room for one request with the previous credentials. */
const LAST_CHANCE = { ofLifetime: 0.1, longestMs: 15_000 };

/**
 * When to try the previous credentials, in ms from now: a little before the held token's end, at random so that a fleet
 * spreads, and soon if there is none.
 */
export function lastChanceDelayMs(failure: FailedAttempt, random: number): number {
  const { heldForMs, lifetimeMs, retryAfterMs = 0, shortestRetryMs = 0 } = failure;
  const margin = Math.min(LAST_CHANCE.longestMs, lifetimeMs * LAST_CHANCE.ofLifetime);
  const shortestMs = Math.max(SHORTEST_INTERVAL_MS, shortestRetryMs);
  const delay = Math.max(shortestMs, heldForMs - margin * (1 - 0.3 * random));
  return Math.max(delay, Math.min(retryAfterMs, LONGEST_RETRY_AFTER_MS));
}
