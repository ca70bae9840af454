/**
 * The token engine's state and rules, as a pure function. `token-source.ts` requests each new `grant`, and looks again at `due`.
 */

import type { RenewalPolicy } from '../config/renewal.ts';
import { elapsedMs, hasPassed, type Instant, later, remainingMs } from '../platform/time/clock.ts';
import { type Authorization, isSameToken } from './bearer-source.ts';
import type { GrantedToken, RefusedGrant } from './provider/token-response.ts';
import {
  ENDED_TOKEN_DELAY_MS,
  type FailedAttempt,
  lastChanceDelayMs,
  renewalDelayMs,
  retryDelayMs,
  sameTokenDelayMs,
  sendableMs,
  spreadRenewalDelayMs,
  surelySendableMs,
} from './schedule.ts';
import { afterForcedRenewal, mayForceRenewal, type UpstreamRecord, withRecord } from './upstream-record.ts';

export type TokenRequestReason =
  | 'startup'
  | 'scheduled'
  | 'rotation'
  | 'upstream_401'
  | 'retry'
  | 'subject'
  /** The newest are rejected and the token is about to expire. */
  | 'previous_credentials'
  | 'manual';

export interface TokenState {
  /** Possibly expired; see `validToken`. */
  readonly token: HeldToken | undefined;
  readonly grant: TokenRequestInFlight | undefined;
  /** While a grant is in flight, only a rotation may be planned. */
  readonly due: PlannedTokenRequest | undefined;
  readonly consecutiveFailures: number;
  /** Failures that count for the back-off; new credentials start afresh. */
  readonly backoffStep: number;
  readonly lastFailure: FailedTokenRequest | undefined;
  /** Whether they were tried since the last success. */
  readonly previousCredentials: 'none' | 'untried' | 'rejected';
  /** By name. */
  readonly upstreams: ReadonlyMap<string, UpstreamRecord>;
  /** Monotonic ms at which the allowance is whole again (a token bucket's arrival time). */
  readonly forcedPaidUntilMs: number;
  readonly rotationsPaidUntilMs: number;
  /** Monotonic ms. */
  readonly manualRefreshAtMs: number;
  readonly grantsBegun: number;
}

interface HeldToken {
  /** A text obtained again keeps its number. */
  readonly number: number;
  readonly authorization: Authorization;
  /** Its lifetime counts from here. */
  readonly requestedAt: Instant;
  readonly expiresAt: Instant;
  /** See `sendableMs`. */
  readonly sendableUntil: Instant;
  readonly grantedTo: 'newest' | 'previous';
}

export interface TokenRequestInFlight {
  readonly id: number;
  readonly reason: TokenRequestReason;
  readonly requestedAt: Instant;
  /** The request may have used credentials from before a rewriting. */
  readonly writing: 'newest' | 'overtaken';
}

interface PlannedTokenRequest {
  readonly at: Instant;
  readonly reason: TokenRequestReason;
}

export interface FailedTokenRequest {
  readonly result: RefusedGrant['result'];
  readonly detail: string;
  readonly at: Instant;
}

export type TokenEvent =
  | { readonly type: 'credentials_loaded' }
  /** With equal content, such as a token that vouches for the client. */
  | { readonly type: 'credentials_rewritten' }
  | { readonly type: 'grant_ended'; readonly id: number; readonly outcome: GrantedToken | RefusedGrant }
  | { readonly type: 'refused_by_upstream'; readonly upstream: string; readonly authorization: Authorization }
  | {
      readonly type: 'accepted_by_upstream';
      readonly upstream: string;
      readonly authorization: Authorization;
    }
  | { readonly type: 'refresh_requested' }
  /** Also if a request found no valid token. */
  | { readonly type: 'looked' };

interface Circumstances {
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
  previousCredentials: 'none',
  upstreams: new Map(),
  forcedPaidUntilMs: Number.NEGATIVE_INFINITY,
  rotationsPaidUntilMs: Number.NEGATIVE_INFINITY,
  manualRefreshAtMs: Number.NEGATIVE_INFINITY,
  grantsBegun: 0,
};

/** At once, then one per interval: a flapping Secret must not load the provider. */
const ROTATION_BURST = 5;
const ROTATION_INTERVAL_MS = 5000;

/** At once, then one per interval: one of several servers behind a name may refuse what others take. */
const FORCED_BURST = 5;
const FORCED_INTERVAL_MS = 30_000;

/** For a button that is held down. */
const MIN_MANUAL_INTERVAL_MS = 10_000;

/** If refused without ever being accepted, a younger token has a fault that another will not cure. */
const YOUNGEST_RENEWABLE_MS = 1000;

export function reduce(state: TokenState, event: TokenEvent, circumstances: Circumstances): TokenState {
  switch (event.type) {
    case 'credentials_loaded':
      return beginIfDue(planForCredentials(state, circumstances), circumstances.now);
    case 'credentials_rewritten':
      return noteRewriting(state, circumstances.now);
    case 'grant_ended':
      return event.id === state.grant?.id
        ? conclude(state, state.grant, event.outcome, circumstances)
        : state;
    case 'refused_by_upstream':
      return considerRefusal(state, event, circumstances.now);
    case 'accepted_by_upstream':
      return noteAcceptance(state, event);
    case 'refresh_requested':
      return considerWish(state, circumstances.now);
    case 'looked':
      return beginIfDue(state, circumstances.now);
  }
}

/** Expired by either clock is expired. */
export function validToken(state: TokenState, now: Instant): HeldToken | undefined {
  return state.token === undefined || hasPassed(state.token.sendableUntil, now) ? undefined : state.token;
}

function planForCredentials(state: TokenState, { now, random, policy }: Circumstances): TokenState {
  if (state.grantsBegun === 0) {
    return { ...state, due: { at: later(now, policy.startupJitterMs * random), reason: 'startup' } };
  }
  // Rejected as the newest, they are not worth a try as the previous.
  const previousCredentials = state.lastFailure?.result === 'rejected' ? 'rejected' : 'untried';
  return planAtOnce({ ...state, previousCredentials }, now);
}

/** A rewriting alone begins no grant, but the old writing may have caused a failure. */
function noteRewriting(state: TokenState, now: Instant): TokenState {
  if (state.backoffStep > 0) return beginIfDue(planAtOnce(state, now), now);
  return state.grant === undefined ? state : { ...state, grant: { ...state.grant, writing: 'overtaken' } };
}

function planAtOnce(state: TokenState, now: Instant): TokenState {
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
  if (state.due === undefined || !hasPassed(state.due.at, now)) return state;
  return begin(state, state.due.reason, now);
}

/** Replaces the planned grant and any back-off, unless a grant is in flight. */
function considerWish(state: TokenState, now: Instant): TokenState {
  if (state.grant !== undefined || now.monotonicMs - state.manualRefreshAtMs < MIN_MANUAL_INTERVAL_MS)
    return state;
  return { ...begin(state, 'manual', now), manualRefreshAtMs: now.monotonicMs };
}

/** The answer of a replaced grant no longer counts. */
function begin(state: TokenState, reason: TokenRequestReason, now: Instant): TokenState {
  const id = state.grantsBegun + 1;
  return {
    ...state,
    grant: { id, reason, requestedAt: now, writing: 'newest' },
    due: undefined,
    grantsBegun: id,
  };
}

function conclude(
  state: TokenState,
  grant: TokenRequestInFlight,
  outcome: GrantedToken | RefusedGrant,
  circumstances: Circumstances,
): TokenState {
  return outcome.result === 'success'
    ? hold(state, grant, outcome, circumstances)
    : planRetry(state, grant, outcome, circumstances);
}

function hold(
  state: TokenState,
  grant: TokenRequestInFlight,
  { accessToken, boundToken, lifetimeMs, sharedAgeMs }: GrantedToken,
  { now, random, policy }: Circumstances,
): TokenState {
  const { reason } = grant;
  const grantedTo = reason === 'previous_credentials' ? 'previous' : 'newest';
  const succeeded: TokenState = {
    ...state,
    grant: undefined,
    consecutiveFailures: 0,
    backoffStep: 0,
    // The newest credentials stay rejected, and this must stay visible.
    lastFailure: grantedTo === 'previous' ? state.lastFailure : undefined,
    previousCredentials: state.previousCredentials === 'none' ? 'none' : 'untried',
  };
  // The held token in its last second.
  if (lifetimeMs === 0) {
    return { ...succeeded, due: state.due ?? { at: later(now, ENDED_TOKEN_DELAY_MS), reason: 'scheduled' } };
  }
  const authorization = boundToken ?? `Bearer ${accessToken}`;
  const held = isSameToken(state.token?.authorization, authorization) ? state.token : undefined;
  const isShared = sharedAgeMs !== undefined;
  const requestedAt = isShared ? later(now, -sharedAgeMs) : grant.requestedAt;
  const expiresAt = later(requestedAt, lifetimeMs);
  const livesNoLonger = held !== undefined && elapsedMs(held.expiresAt, expiresAt) <= SAME_END_MS;
  // Processes that share a token do not line up with a fleet.
  const isUnhurried = reason === 'scheduled' || isShared;
  const delayMs = livesNoLonger ? sameTokenDelayMs : isUnhurried ? renewalDelayMs : spreadRenewalDelayMs;
  // A token that never expires is replaced only when the mounted one changes.
  const renewal: PlannedTokenRequest | undefined = Number.isFinite(lifetimeMs)
    ? { at: later(requestedAt, delayMs(lifetimeMs, policy, random)), reason: 'scheduled' }
    : undefined;
  return {
    ...succeeded,
    token: {
      number: held?.number ?? grant.id,
      authorization: held?.authorization ?? authorization,
      requestedAt,
      expiresAt,
      sendableUntil: later(requestedAt, (livesNoLonger ? surelySendableMs : sendableMs)(lifetimeMs)),
      grantedTo,
    },
    due: state.due ?? renewal,
  };
}

/** Answers may round the end of one token up and down, or be slow. */
const SAME_END_MS = 2000;

function planRetry(
  state: TokenState,
  { reason, writing, requestedAt }: TokenRequestInFlight,
  outcome: RefusedGrant,
  { now, random, policy }: Circumstances,
): TokenState {
  const { token } = state;
  const rejected = outcome.result === 'rejected';
  const previousRejected = rejected && reason === 'previous_credentials';
  const backoffStep = rejected && hasRunOut(state, now) ? 1 : state.backoffStep + 1;
  const attempt: FailedAttempt = {
    consecutiveFailures: backoffStep,
    rejected,
    previousRejected,
    retryAfterMs: outcome.retryAfterMs,
    heldForMs: token === undefined ? 0 : remainingMs(token.sendableUntil, now),
    lifetimeMs:
      token === undefined ? policy.defaultLifetimeMs : remainingMs(token.expiresAt, token.requestedAt),
    tookMs: now.monotonicMs - requestedAt.monotonicMs,
    recoveryMs: policy.recoveryMs,
    shortestRetryMs: policy.shortestRetryMs,
  };
  const previousCredentials = previousRejected ? 'rejected' : state.previousCredentials;
  const failed: TokenState = {
    ...state,
    grant: undefined,
    due: state.due ?? plannedRetry(attempt, previousCredentials, now, random),
    consecutiveFailures: state.consecutiveFailures + 1,
    backoffStep,
    lastFailure: { result: outcome.result, detail: outcome.detail, at: now },
    previousCredentials,
  };
  return writing === 'overtaken' ? planAtOnce(failed, now) : failed;
}

function plannedRetry(
  attempt: FailedAttempt,
  previousCredentials: TokenState['previousCredentials'],
  now: Instant,
  random: number,
): PlannedTokenRequest {
  const delayMs = retryDelayMs(attempt, random);
  if (attempt.rejected && previousCredentials === 'untried') {
    const lastChanceMs = lastChanceDelayMs(attempt, random);
    if (lastChanceMs <= delayMs) return { at: later(now, lastChanceMs), reason: 'previous_credentials' };
  }
  return { at: later(now, delayMs), reason: 'retry' };
}

/** Retries before the token's end do not count for the time after. */
function hasRunOut({ token, lastFailure }: TokenState, now: Instant): boolean {
  if (token === undefined || lastFailure === undefined) return false;
  return hasPassed(token.sendableUntil, now) && !hasPassed(token.sendableUntil, lastFailure.at);
}

interface SharedTokenCheck {
  readonly upstream: string;
  readonly authorization: Authorization;
}

function noteAcceptance(state: TokenState, { upstream, authorization }: SharedTokenCheck): TokenState {
  // A request sent before a renewal says nothing of the token held now.
  if (state.token?.authorization !== authorization) return state;
  return {
    ...state,
    upstreams: withRecord(state.upstreams, upstream, { state: 'accepting', token: state.token.number }),
  };
}

function considerRefusal(
  state: TokenState,
  { upstream, authorization }: SharedTokenCheck,
  { monotonicMs: nowMs, wallMs }: Instant,
): TokenState {
  const { token, grant } = state;
  if (token === undefined || token.authorization !== authorization || grant !== undefined) return state;
  if (state.consecutiveFailures > 0) return state;
  const record = state.upstreams.get(upstream);
  const worked = record?.state === 'accepting' && record.token === token.number;
  if (!worked && nowMs - token.requestedAt.monotonicMs < YOUNGEST_RENEWABLE_MS) return state;
  if (!mayForceRenewal(record, nowMs)) return state;
  const paidUntilMs = Math.max(state.forcedPaidUntilMs, nowMs) + FORCED_INTERVAL_MS;
  if (paidUntilMs - nowMs > FORCED_BURST * FORCED_INTERVAL_MS) return state;
  return {
    ...begin(state, 'upstream_401', { monotonicMs: nowMs, wallMs }),
    upstreams: withRecord(state.upstreams, upstream, afterForcedRenewal(record, nowMs)),
    forcedPaidUntilMs: paidUntilMs,
  };
}
