/**
 * Who a service account token is of: verified here by the cluster's keys, then by a TokenReview, which is remembered for
 * a while. After that it is reviewed anew, so that the token of a deleted pod is refused soon; and while the API server
 * is slow or away, what it said stays good for a bounded time.
 */

import { hash } from 'node:crypto';
import { elapsedMs, isPast, later } from '../clock.ts';
import type { KubernetesApi } from '../kubernetes/api.ts';
import type { BackoffOptions } from '../kubernetes/backoff.ts';
import type { Logger } from '../log/logger.ts';
import { within } from '../within.ts';
import type { RefusedProof, Verdict } from './caller.ts';
import { followClusterKeys } from './cluster-keys.ts';
import type { FairLineLimits } from './fair-line.ts';
import { type ConfirmedToken, createKnownTokens } from './known-tokens.ts';
import type { CallerMetrics } from './metrics.ts';
import { type ServiceAccountClaims, verifyServiceAccountToken } from './service-account-token.ts';
import { createTokenReviews, REVIEW_LINE, type ReviewOutcome } from './token-reviews.ts';

export interface KnownVerdict {
  readonly verdict: Verdict;
  /** Whether `verify` would ask anew: the verdict holds where that is out of reach. */
  readonly isDue: boolean;
}

export interface ServiceAccountVerifier {
  /**
   * Rejects for faults of the program alone, and answers within 11 s: one reading of the cluster's keys and one review.
   * @param token as it was shown; never logged, and kept only as its SHA-256.
   */
  verify(token: string): Promise<Verdict>;
  /** What is known of a token without asking anybody; undefined where nothing is. */
  known(token: string): KnownVerdict | undefined;
  /** Whether the cluster's keys have been read. */
  ready(): boolean;
  close(): void;
}

export interface ServiceAccountVerifierOptions extends BackoffOptions {
  /** The one audience that tokens must have. */
  readonly audience: string;
  readonly log: Logger;
  readonly metrics: CallerMetrics;
  /** Those of `CROWD` where absent. */
  readonly crowd?: CrowdLimits;
}

/** How many tokens may come in one moment of which nothing is known. */
export interface CrowdLimits {
  /** Looked at in the same moment. */
  readonly mostAtOnce: number;
  /** Reviewed, of those that the cluster has signed. */
  readonly line: FairLineLimits;
}

export const CROWD: CrowdLimits = { mostAtOnce: 5000, line: REVIEW_LINE };

/** How long a review is believed. */
export const REVIEWED_FOR_MS = 60_000;

/** How long it is, where no other is to be had. */
export const REVIEWED_AT_MOST_MS = 300_000;

/** How long whoever has an older review waits for the next. */
const WAIT_FOR_NEXT_MS = 1000;

/** A token that was denied is denied without another review for so long. */
const DENIED_FOR_MS = 10_000;

/** There may be room in the crowd soon. */
const ASK_SOON: Verdict = { kind: 'unavailable', retryAfterMs: 1000 };

export function createServiceAccountVerifier(
  api: KubernetesApi,
  options: ServiceAccountVerifierOptions,
): ServiceAccountVerifier {
  const { clock, random, audience, log, metrics, crowd = CROWD } = options;
  const keys = followClusterKeys(api, options);
  const reviews = createTokenReviews(api, { clock, random, audience, log, metrics, line: crowd.line });
  const known = createKnownTokens(REVIEWED_AT_MOST_MS);
  /** By hash: whoever shows the same token meanwhile gets the same verdict. */
  const underWay = new Map<string, Promise<Verdict>>();

  async function look(token: string, hash: string): Promise<Verdict> {
    const reading = await verifyServiceAccountToken(token, { keys, audience, now: clock.now() });
    switch (reading.kind) {
      case 'verified':
        return concluded(hash, reading.claims, await reviews.review(token, reading.claims.caller));
      case 'refused':
        return refused(reading.reason);
      case 'keys_unavailable':
        return { kind: 'unavailable', retryAfterMs: reading.retryAfterMs };
    }
  }

  function concluded(
    hash: string,
    { caller, expiresAt }: ServiceAccountClaims,
    outcome: ReviewOutcome,
  ): Verdict {
    const now = clock.now();
    switch (outcome.kind) {
      case 'confirmed':
        known.set(hash, { kind: 'confirmed', caller, expiresAt, reviewedAt: now }, now);
        return { kind: 'accepted', caller };
      case 'denied':
        known.set(hash, { kind: 'denied', caller, until: later(now, DENIED_FOR_MS) }, now);
        return { ...refused('revoked'), caller };
      case 'unavailable':
        return { ...outcome, caller };
    }
  }

  function shared(hash: string, begin: () => Promise<Verdict>): Promise<Verdict> {
    const same = underWay.get(hash);
    if (same !== undefined) return same;
    if (underWay.size >= crowd.mostAtOnce) return Promise.resolve(ASK_SOON);
    const verdict = begin().finally(() => underWay.delete(hash));
    underWay.set(hash, verdict);
    return verdict;
  }

  /** A token that was confirmed a while ago. */
  async function reviewAgain(token: string, hash: string, before: ConfirmedToken): Promise<Verdict> {
    const stays = elapsedMs(before.reviewedAt, clock.now()) < REVIEWED_AT_MOST_MS;
    const next = shared(hash, async () =>
      concluded(hash, before, await reviews.review(token, before.caller)),
    );
    if (!stays) return await next;
    const verdict = await within(WAIT_FOR_NEXT_MS, next, clock);
    if (verdict === 'late') {
      next.catch((error: unknown) => log.error({ err: error }, 'a service account token was not reviewed'));
    } else if (verdict.kind !== 'unavailable') {
      return verdict;
    }
    return { kind: 'accepted', caller: before.caller };
  }

  function recall(hash: string): KnownVerdict | undefined {
    const before = known.get(hash);
    if (before === undefined) return undefined;
    const now = clock.now();
    if (before.kind === 'denied')
      return isPast(before.until, now)
        ? undefined
        : { verdict: { ...refused('revoked'), caller: before.caller }, isDue: false };
    if (isPast(before.expiresAt, now)) {
      return { verdict: { ...refused('expired'), caller: before.caller }, isDue: false };
    }
    const ageMs = elapsedMs(before.reviewedAt, now);
    if (ageMs >= REVIEWED_AT_MOST_MS) return undefined;
    return { verdict: { kind: 'accepted', caller: before.caller }, isDue: ageMs >= REVIEWED_FOR_MS };
  }

  async function decide(token: string): Promise<Verdict> {
    const hash = hashOf(token);
    const recalled = recall(hash);
    if (recalled !== undefined && !recalled.isDue) return recalled.verdict;
    const before = known.get(hash);
    if (before?.kind === 'confirmed') return await reviewAgain(token, hash, before);
    return await shared(hash, () => look(token, hash));
  }

  return {
    async verify(token) {
      const verdict = await decide(token);
      metrics.verified(verdict);
      return verdict;
    },
    known(token) {
      const recalled = recall(hashOf(token));
      if (recalled?.isDue === false) metrics.verified(recalled.verdict);
      return recalled;
    },
    ready: () => keys.current() !== undefined,
    close: () => keys.close(),
  };
}

function hashOf(token: string): string {
  return hash('sha256', token, 'latin1');
}

function refused(reason: RefusedProof): Verdict {
  return { kind: 'refused', reason };
}
