import { Counter, Histogram, type Registry } from '../platform/prometheus.ts';
import { type AuthenticationResult, REFUSED_PROOFS } from './caller.ts';

type ReviewResult = 'confirmed' | 'denied' | 'unavailable' | 'queue_full';

export interface CallerMetrics {
  verified(verdict: AuthenticationResult): void;
  /** @param durationSeconds the API server's round trip. */
  reviewed(result: ReviewResult, durationSeconds: number): void;
}

export function createCallerMetrics(registry: Registry): CallerMetrics {
  const registers = [registry];
  const verdicts = new Counter({
    name: 'token_sidecar_caller_verdicts_total',
    help: 'Service account tokens of callers, by what became of them; reason says why one was refused.',
    labelNames: ['result', 'reason'],
    registers,
  });
  const reviews = new Counter({
    name: 'token_sidecar_caller_token_reviews_total',
    help: 'TokenReviews that were asked of the API server, by result; queue_full are those that had to be left.',
    labelNames: ['result'],
    registers,
  });
  const duration = new Histogram({
    name: 'token_sidecar_caller_token_review_duration_seconds',
    help: 'Time of a TokenReview, answered or failed.',
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 3],
    registers,
  });
  // So that the first event shows as an increase.
  for (const result of ['accepted', 'unavailable']) verdicts.inc({ result, reason: '' }, 0);
  for (const reason of REFUSED_PROOFS) verdicts.inc({ result: 'refused', reason }, 0);
  for (const result of ['confirmed', 'denied', 'unavailable', 'queue_full']) reviews.inc({ result }, 0);
  return {
    verified: (verdict) =>
      verdicts.inc({ result: verdict.kind, reason: verdict.kind === 'refused' ? verdict.reason : '' }),
    reviewed(result, durationSeconds) {
      reviews.inc({ result });
      if (result !== 'queue_full') duration.observe(durationSeconds);
    },
  };
}
