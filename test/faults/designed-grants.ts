/**
 * The most grants that the engine may make in any minute, by its own rules: a count, not a measurement. The fault
 * matrix holds every row to one of these.
 */

import { DEFAULT_RENEWAL } from '../../src/config/renewal.ts';
import { retryDelayMs } from '../../src/token/schedule.ts';

const MINUTE_MS = 60_000;

/** A scheduled grant fails, and every retry comes as soon as chance allows. */
function mostAttempts(shortestDelayMs: (consecutiveFailures: number) => number): number {
  let attempts = 0;
  for (let atMs = 0; atMs < MINUTE_MS; atMs += shortestDelayMs(attempts)) attempts += 1;
  return attempts;
}

/** Attempts that fail at once, by the default policy. */
const POLICY = { tookMs: 0, recoveryMs: DEFAULT_RENEWAL.recoveryMs };

/** Without a token: with one the steps are longer. */
const ordinary = (consecutiveFailures: number) =>
  retryDelayMs({ consecutiveFailures, rejected: false, heldForMs: 0, lifetimeMs: 1, ...POLICY }, 0);

const rejected = (consecutiveFailures: number) =>
  retryDelayMs({ consecutiveFailures, rejected: true, heldForMs: 0, lifetimeMs: 1, ...POLICY }, 0);

/** While a token lasts: the longest step is a third of what is left. */
const rejectedWithToken = (consecutiveFailures: number) =>
  retryDelayMs({ consecutiveFailures, rejected: true, heldForMs: 60_000, lifetimeMs: 300_000, ...POLICY }, 0);

export const MAX_GRANTS_PER_MINUTE = {
  /** While the provider is unavailable or answers nonsense. */
  failing: mostAttempts(ordinary),
  /** While it rejects the credentials. */
  rejected: mostAttempts(rejected),
  /** While it rejects them and a token is held: with the previous credentials, and the newest once more. */
  rejectedWithToken: mostAttempts(rejectedWithToken) + 2,
  /** While grants succeed, with tokens of five minutes: the renewal of one that was just obtained, and one more. */
  succeeding: 2,
  /** A Secret that changes all the time: five at once and one in five seconds (token-state.ts), on top of a renewal. */
  rotating: 5 + 12 + 1,
} as const;

/** The most of `atMs` that fall into any one minute. */
export function mostInAnyMinute(atMs: readonly number[]): number {
  const sorted = atMs.toSorted((a, b) => a - b);
  return Math.max(
    0,
    ...sorted.map((from, index) => sorted.slice(index).filter((at) => at - from < MINUTE_MS).length),
  );
}
