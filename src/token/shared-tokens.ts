/** Tokens that processes of one purpose share. */

import type { RenewalPolicy } from '../config/renewal.ts';
import { hasPassed, type Instant, later } from '../platform/time/clock.ts';
import type { Authorization } from './bearer-source.ts';
import type { Credentials } from './credentials.ts';
import type { GrantedToken, TokenResponse } from './provider/token-response.ts';
import { earliestRenewalMs } from './schedule.ts';

export interface SharedTokens {
  /**
   * Another process's token, or the result of `ask`, which is called at most once. Never rejects. Everything before `ask` is
   * bounded in time.
   */
  obtain(wanted: WantedToken, ask: () => Promise<TokenResponse>): Promise<TokenResponse>;
}

export interface WantedToken {
  readonly credentials: Credentials;
  readonly signal: AbortSignal;
  readonly judge: (shared: SharedToken) => SharedTokenCheck;
}

export interface SharedToken extends Pick<GrantedToken, 'accessToken' | 'lifetimeMs'> {
  /** Since its request was sent. */
  readonly ageMs: number;
}

/**
 * - `old`: about to be renewed, or no younger than the held one.
 * - `refused`: by an upstream.
 */
type SharedTokenCheck = 'taken' | 'old' | 'refused';

interface HeldHere {
  readonly token: { readonly authorization: Authorization; readonly requestedAt: Instant } | undefined;
  /** By an upstream. */
  readonly isRefused: boolean;
}

export function checkShared(
  { accessToken, lifetimeMs, ageMs }: SharedToken,
  { token, isRefused }: HeldHere,
  policy: RenewalPolicy,
  now: Instant,
): SharedTokenCheck {
  if (token?.authorization === `Bearer ${accessToken}`) return isRefused ? 'refused' : 'old';
  if (!(ageMs < earliestRenewalMs(lifetimeMs, policy))) return 'old';
  const isYounger = token === undefined || !hasPassed(later(now, -ageMs), token.requestedAt);
  return isYounger ? 'taken' : 'old';
}
