/** Tokens that processes of one purpose share, so that one of them asks for all. What keeps them is not known here. */

import { type Instant, isPast, later } from '../clock.ts';
import type { RenewalPolicy } from '../config/config.ts';
import type { Credentials } from './credentials.ts';
import type { GrantedToken, TokenResponse } from './provider/token-response.ts';
import { earliestRenewalMs } from './schedule.ts';

export interface SharedTokens {
  /**
   * A token that another has asked for, or what `ask` comes to, which is called once at most. Never rejects, as `ask` never
   * does. Bounded in all that comes before `ask`.
   */
  obtain(wanted: WantedToken, ask: () => Promise<TokenResponse>): Promise<TokenResponse>;
}

export interface WantedToken {
  /** Those that would be asked with. */
  readonly credentials: Credentials;
  /** Nobody waits any more. */
  readonly signal: AbortSignal;
  readonly judge: (shared: SharedToken) => Judgement;
}

export interface SharedToken extends Pick<GrantedToken, 'accessToken' | 'lifetimeMs'> {
  /** Since the request for it was sent. */
  readonly ageMs: number;
}

/**
 * - `taken`
 * - `old`: it is about to be renewed, or no younger than the one that is held.
 * - `refused`: an upstream has refused this very token.
 */
export type Judgement = 'taken' | 'old' | 'refused';

export interface HeldHere {
  readonly token: { readonly authorization: string; readonly requestedAt: Instant } | undefined;
  /** An upstream has refused it. */
  readonly isRefused: boolean;
}

/** What to make of a token that another has asked for. */
export function judgeShared(
  { accessToken, lifetimeMs, ageMs }: SharedToken,
  { token, isRefused }: HeldHere,
  policy: RenewalPolicy,
  now: Instant,
): Judgement {
  // Whatever is said of its age: it is the one that is to be replaced.
  if (token?.authorization === `Bearer ${accessToken}`) return isRefused ? 'refused' : 'old';
  if (!(ageMs < earliestRenewalMs(lifetimeMs, policy))) return 'old';
  const isYounger = token === undefined || !isPast(later(now, -ageMs), token.requestedAt);
  return isYounger ? 'taken' : 'old';
}
