/** A run, measured against the fleet's own steady load. */

import { countPerBucket, type FleetRun, type FleetScenario, meanRenewalPeriodMs } from './fleet.ts';

/** Requests are counted over this part of a mean renewal period. */
export const BUCKETS_PER_PERIOD = 20;

/** Peaks are multiples of the fleet at rest, which asks once per pod and mean renewal period, evenly spread. */
export interface FleetReport {
  readonly bucketMs: number;
  readonly steadyPerBucket: number;
  /** While the pods start: the fleet's first grants, which nothing may delay. */
  readonly peakInRollout: number;
  readonly peakAfterRollout: number;
  /** Refused connections included. */
  readonly peakInOutage: number;
  readonly peakAfterOutage: number;
  /** Requests in the busiest bucket after the rollout, and after the outage. */
  readonly mostAfterRollout: number;
  readonly mostAfterOutage: number;
  /** For a chart: each bucket from time 0. */
  readonly rates: readonly number[];
}

/**
 * Requests that a bucket may hold: three times the steady load, and after an outage those of a fleet that comes back
 * within one step, which lasts three quarters of `recovery` on average, with a fifth for unevenness. For a fleet so small
 * that it expects a handful, what chance adds to that (three standard deviations of a count).
 */
export function mostAllowed(
  { pods, policy }: FleetScenario,
  { steadyPerBucket, bucketMs }: FleetReport,
): { readonly afterRollout: number; readonly afterOutage: number } {
  const withChance = (target: number) =>
    steadyPerBucket >= 50 ? target : Math.floor(target + 3 * Math.sqrt(target));
  const steady = 3 * steadyPerBucket;
  // A pod asks no more than once in half a step.
  const steps = Math.ceil(bucketMs / (0.5 * policy.recoveryMs));
  const returning = Math.min(pods * steps, (1.2 * pods * bucketMs) / (0.75 * policy.recoveryMs));
  return { afterRollout: withChance(steady), afterOutage: withChance(Math.max(steady, returning)) };
}

export function reportOn(scenario: FleetScenario, run: FleetRun): FleetReport {
  const { outage, tokenLifetimeMs } = scenario.provider;
  const bucketMs = meanRenewalPeriodMs(tokenLifetimeMs, scenario.policy) / BUCKETS_PER_PERIOD;
  const steadyPerBucket = scenario.pods / BUCKETS_PER_PERIOD;
  // The last pods' first answers are still on their way when the rollout ends.
  const rolledOutMs = scenario.rolloutMs + 1000;

  function most(fromMs: number, toMs: number): number {
    return Math.max(0, ...countPerBucket(run.requestsAtMs, bucketMs, fromMs, toMs));
  }

  const mostAfterRollout = most(rolledOutMs, outage.fromMs);
  const mostAfterOutage = most(outage.toMs, scenario.endMs);
  return {
    bucketMs,
    steadyPerBucket,
    peakInRollout: most(0, Math.max(rolledOutMs, bucketMs)) / steadyPerBucket,
    peakAfterRollout: mostAfterRollout / steadyPerBucket,
    peakInOutage: most(outage.fromMs, outage.toMs) / steadyPerBucket,
    peakAfterOutage: mostAfterOutage / steadyPerBucket,
    mostAfterRollout,
    mostAfterOutage,
    rates: countPerBucket(run.requestsAtMs, bucketMs, 0, scenario.endMs).map(
      (count) => count / steadyPerBucket,
    ),
  };
}
