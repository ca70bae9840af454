/**
 * The API server's verdicts on tokens (authentication.k8s.io/v1 TokenReview): a limited number at once, taking turns
 * between namespaces.
 */

import * as v from 'valibot';
import { type KubernetesApi, KubernetesApiError } from '../platform/kubernetes/api.ts';
import { FairQueue, type FairQueueLimits } from '../platform/limits/fair-queue.ts';
import type { Logger } from '../platform/log/logger.ts';
import { type BackoffOptions, doublingMs } from '../platform/time/async.ts';
import { isPast, later, remainingMs } from '../platform/time/clock.ts';
import type { ServiceAccountCaller } from './caller.ts';
import type { CallerMetrics } from './metrics.ts';

export type ReviewOutcome =
  | { readonly kind: 'confirmed' }
  | { readonly kind: 'denied' }
  | { readonly kind: 'unavailable'; readonly retryAfterMs: number };

interface TokenReviews {
  /** Never rejects. Answers within 6 s: 3 s in line and 3 s for the request. */
  review(token: string, caller: ServiceAccountCaller): Promise<ReviewOutcome>;
}

interface TokenReviewsOptions extends BackoffOptions {
  readonly audience: string;
  readonly log: Logger;
  readonly metrics: CallerMetrics;
  readonly line: FairQueueLimits;
}

/** A rollout of two thousand pods in one namespace fits, and leaves as much to the others. */
export const REVIEW_LINE = {
  atOnce: 16,
  mostWaiting: 4000,
  mostWaitingOfOne: 2000,
  patienceMs: 3000,
} satisfies FairQueueLimits;

const TIMEOUT_MS = 3000;

/** The pause after a failure: long enough to spare an ailing API server, short enough to be back soon. */
const PAUSE = { firstMs: 100, maxMs: 2000 };

const PATH = '/apis/authentication.k8s.io/v1/tokenreviews';

const answer = v.object({
  status: v.object({
    authenticated: v.optional(v.boolean(), false),
    audiences: v.optional(v.array(v.string()), []),
    user: v.optional(
      v.object({
        username: v.optional(v.string()),
        extra: v.optional(v.record(v.string(), v.array(v.string())), {}),
      }),
    ),
  }),
});
type Status = v.InferOutput<typeof answer>['status'];

export function createTokenReviews(api: KubernetesApi, options: TokenReviewsOptions): TokenReviews {
  const { clock, random, audience, log, metrics } = options;
  const line = new FairQueue(clock, options.line);
  let failures = 0;
  let pausedUntil = clock.now();

  function unavailable(): ReviewOutcome {
    const pauseMs = remainingMs(pausedUntil, clock.now());
    return { kind: 'unavailable', retryAfterMs: Math.max(PAUSE.firstMs, pauseMs) };
  }

  async function ask(token: string, caller: ServiceAccountCaller): Promise<ReviewOutcome> {
    const startedAtMs = clock.monotonicMs();
    try {
      const body = {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenReview',
        spec: { token, audiences: [audience] },
      };
      const { status } = v.parse(answer, await api.request('POST', PATH, { body, timeoutMs: TIMEOUT_MS }));
      failures = 0;
      const kind = confirms(status, caller, audience) ? 'confirmed' : 'denied';
      metrics.reviewed(kind, (clock.monotonicMs() - startedAtMs) / 1000);
      return { kind };
    } catch (error) {
      const growing = doublingMs(failures++, PAUSE);
      const asked = error instanceof KubernetesApiError ? (error.retryAfterMs ?? 0) : 0;
      const pauseMs = Math.min(PAUSE.maxMs, Math.max(asked, growing * (0.5 + 0.5 * random())));
      pausedUntil = later(clock.now(), pauseMs);
      metrics.reviewed('unavailable', (clock.monotonicMs() - startedAtMs) / 1000);
      // A schema's message would quote the answer, and with it the token.
      const err = error instanceof KubernetesApiError ? error : new Error('the answer is no TokenReview');
      log.error({ err, failures }, 'service account tokens cannot be reviewed');
      return unavailable();
    }
  }

  return {
    async review(token, caller) {
      if (!isPast(pausedUntil, clock.now())) return unavailable();
      const place = line.enter(caller.namespace);
      if ((await place.turn) !== 'come') {
        metrics.reviewed('queue_full', 0);
        return unavailable();
      }
      try {
        // The reviews before it may have failed while it waited.
        if (!isPast(pausedUntil, clock.now())) return unavailable();
        return await ask(token, caller);
      } finally {
        place.end();
      }
    },
  };
}

/** Whether the API server confirms the token for our audience, and for the caller and pod that it is signed for. */
function confirms(
  { authenticated, audiences, user }: Status,
  { namespace, serviceAccount, pod }: ServiceAccountCaller,
  audience: string,
): boolean {
  if (!authenticated || !audiences.includes(audience)) return false;
  if (user?.username !== `system:serviceaccount:${namespace}:${serviceAccount}`) return false;
  const uids = user.extra['authentication.kubernetes.io/pod-uid'];
  return uids === undefined || (uids.length === 1 && uids[0] === pod?.uid);
}
