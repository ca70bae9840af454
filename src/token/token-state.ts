/**
 * The token engine's memory and its only rules for changing it: a pure function of (state, event, now). The shell
 * (`token-source.ts`) owns timers and the network, and derives what to do from what changed: a new `grant` is to be
 * requested, `due` is when to look again.
 */

import { type Instant, isPast, later, remainingMs } from '../clock.ts';
import type { RenewalPolicy } from '../config/config.ts';
import {
  refusalCooldownMs,
  renewalDelayMs,
  retryDelayMs,
  sendableMs,
  spreadRenewalDelayMs,
} from './schedule.ts';
import type { GrantedToken, RefusedGrant } from './token-response.ts';

export type GrantReason = 'startup' | 'scheduled' | 'rotation' | 'upstream_401' | 'retry';

export interface TokenState {
  /** The newest token, possibly expired; see `validToken`. */
  readonly token: HeldToken | undefined;
  /** At most one at any time. */
  readonly grant: GrantInFlight | undefined;
  /** The next grant that is planned. While one is in flight only a rotation may be. */
  readonly due: PlannedGrant | undefined;
  /** Failures since the last success. */
  readonly consecutiveFailures: number;
  /** Failures that count for the backoff: like the above, but new credentials start afresh. */
  readonly backoffStep: number;
  readonly lastFailure: FailedGrant | undefined;
  /** Monotonic ms at which an upstream's 401 last forced a renewal. */
  readonly forcedAtMs: number;
  /** Forced renewals in a row that did not silence the upstream. */
  readonly futileRenewals: number;
  /** Monotonic ms at which the allowance of immediate rotations is whole again (a token bucket's arrival time). */
  readonly rotationsPaidUntilMs: number;
  /** Grants begun so far; numbers them. */
  readonly grantsBegun: number;
}

export interface HeldToken {
  /** `Bearer …` */
  readonly authorization: string;
  /** When the request for it was sent: its lifetime counts from there, however slow the answer was. */
  readonly requestedAt: Instant;
  readonly expiresAt: Instant;
  /** A little before its end; see `sendableMs`. */
  readonly sendableUntil: Instant;
}

export interface GrantInFlight {
  readonly id: number;
  readonly reason: GrantReason;
  readonly requestedAt: Instant;
}

export interface PlannedGrant {
  readonly at: Instant;
  readonly reason: GrantReason;
}

export interface FailedGrant {
  readonly result: RefusedGrant['result'];
  readonly detail: string;
  readonly at: Instant;
}

export type TokenEvent =
  /** Credentials that differ from the ones before were read. */
  | { readonly type: 'credentials_loaded' }
  /** The answer to grant `id`, or its failure. */
  | { readonly type: 'grant_ended'; readonly id: number; readonly outcome: GrantedToken | RefusedGrant }
  /** An upstream answered 401 to this Authorization value. */
  | { readonly type: 'refused_by_upstream'; readonly authorization: string }
  /** Time has passed: the timer fired, or a request found no valid token. */
  | { readonly type: 'looked' };

export interface Circumstances {
  readonly now: Instant;
  /** In [0, 1). */
  readonly random: number;
  readonly policy: RenewalPolicy;
}

export const INITIAL_STATE: TokenState = {
  token: undefined,
  grant: undefined,
  due: undefined,
  consecutiveFailures: 0,
  backoffStep: 0,
  lastFailure: undefined,
  forcedAtMs: Number.NEGATIVE_INFINITY,
  futileRenewals: 0,
  rotationsPaidUntilMs: Number.NEGATIVE_INFINITY,
  grantsBegun: 0,
};

/** Immediate grants for changed credentials: this many at once, then one per interval. A Secret that flaps must not become load on the provider. */
const ROTATION_BURST = 5;
const ROTATION_INTERVAL_MS = 5000;

/** A token younger than this was refused for a reason that another one will not cure. */
const YOUNGEST_RENEWABLE_MS = 1000;

export function reduce(state: TokenState, event: TokenEvent, circumstances: Circumstances): TokenState {
  switch (event.type) {
    case 'credentials_loaded':
      return beginIfDue(planForCredentials(state, circumstances), circumstances.now);
    case 'grant_ended':
      return event.id === state.grant?.id
        ? conclude(state, state.grant, event.outcome, circumstances)
        : state;
    case 'refused_by_upstream':
      return considerRefusal(state, event.authorization, circumstances.now);
    case 'looked':
      return beginIfDue(state, circumstances.now);
  }
}

/** The token that may be sent now. Expired by either clock is expired. */
export function validToken(state: TokenState, now: Instant): HeldToken | undefined {
  return state.token === undefined || isPast(state.token.sendableUntil, now) ? undefined : state.token;
}

function planForCredentials(state: TokenState, { now, random, policy }: Circumstances): TokenState {
  if (state.grantsBegun === 0) {
    return { ...state, due: { at: later(now, policy.startupJitterMs * random), reason: 'startup' } };
  }
  if (state.due?.reason === 'rotation') return state;
  const paidUntilMs = Math.max(state.rotationsPaidUntilMs, now.monotonicMs) + ROTATION_INTERVAL_MS;
  const waitMs = Math.max(0, paidUntilMs - ROTATION_BURST * ROTATION_INTERVAL_MS - now.monotonicMs);
  return {
    ...state,
    due: { at: later(now, waitMs), reason: 'rotation' },
    backoffStep: 0,
    rotationsPaidUntilMs: paidUntilMs,
  };
}

function beginIfDue(state: TokenState, now: Instant): TokenState {
  if (state.due === undefined || !isPast(state.due.at, now)) return state;
  return begin(state, state.due.reason, now);
}

/** A rotation takes the place of a grant in flight, whose answer no longer counts. */
function begin(state: TokenState, reason: GrantReason, now: Instant): TokenState {
  const id = state.grantsBegun + 1;
  return { ...state, grant: { id, reason, requestedAt: now }, due: undefined, grantsBegun: id };
}

function conclude(
  state: TokenState,
  grant: GrantInFlight,
  outcome: GrantedToken | RefusedGrant,
  { now, random, policy }: Circumstances,
): TokenState {
  const ended = { ...state, grant: undefined };
  if (outcome.result === 'success') {
    const { requestedAt, reason } = grant;
    const delayMs = reason === 'scheduled' ? renewalDelayMs : spreadRenewalDelayMs;
    return {
      ...ended,
      token: {
        authorization: `Bearer ${outcome.accessToken}`,
        requestedAt,
        expiresAt: later(requestedAt, outcome.lifetimeMs),
        sendableUntil: later(requestedAt, sendableMs(outcome.lifetimeMs)),
      },
      due: state.due ?? {
        at: later(requestedAt, delayMs(outcome.lifetimeMs, policy, random)),
        reason: 'scheduled',
      },
      consecutiveFailures: 0,
      backoffStep: 0,
      lastFailure: undefined,
    };
  }
  const { token } = state;
  const delayMs = retryDelayMs(
    {
      ...outcome,
      consecutiveFailures: state.backoffStep + 1,
      rejected: outcome.result === 'rejected',
      heldForMs: token === undefined ? 0 : remainingMs(token.sendableUntil, now),
      lifetimeMs:
        token === undefined ? policy.defaultLifetimeMs : remainingMs(token.expiresAt, token.requestedAt),
    },
    random,
  );
  return {
    ...ended,
    due: state.due ?? { at: later(now, delayMs), reason: 'retry' },
    consecutiveFailures: state.consecutiveFailures + 1,
    backoffStep: state.backoffStep + 1,
    lastFailure: { result: outcome.result, detail: outcome.detail, at: now },
  };
}

function considerRefusal(state: TokenState, authorization: string, now: Instant): TokenState {
  const { token, grant } = state;
  // A newer token is in hand, or on its way, or being waited for after a failure.
  if (token === undefined || token.authorization !== authorization || grant !== undefined) return state;
  if (state.consecutiveFailures > 0) return state;
  if (now.monotonicMs - token.requestedAt.monotonicMs < YOUNGEST_RENEWABLE_MS) return state;
  // Counted from the last forced renewal, not from the token: a scheduled one in between cures the upstream no better.
  const sinceForcedMs = now.monotonicMs - state.forcedAtMs;
  const cooldownMs = refusalCooldownMs(state.futileRenewals);
  if (sinceForcedMs < cooldownMs) return state;
  return {
    ...begin(state, 'upstream_401', now),
    forcedAtMs: now.monotonicMs,
    futileRenewals: sinceForcedMs < 2 * cooldownMs ? state.futileRenewals + 1 : 0,
  };
}
