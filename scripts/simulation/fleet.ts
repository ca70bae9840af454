/** Any number of pods, each with the real engine's reducer, against one provider over simulated time. */

import type { RenewalPolicy } from '../../src/config/renewal.ts';
import type { Instant } from '../../src/platform/time/clock.ts';
import { INITIAL_STATE, reduce, type TokenEvent, type TokenState } from '../../src/token/token-state.ts';
import { EventQueue } from './event-queue.ts';
import { type ProviderModel, startProvider } from './provider.ts';
import { seededRandom } from './random.ts';

export interface FleetScenario {
  readonly pods: number;
  /** The pods start at random within this much of time 0. */
  readonly rolloutMs: number;
  readonly endMs: number;
  readonly provider: ProviderModel;
  readonly policy: RenewalPolicy;
  readonly seed: number;
}

export interface FleetRun {
  /** When each request reached the provider, refused ones included; ascending. */
  readonly requestsAtMs: readonly number[];
  /** When the last pod had its first token. */
  readonly allReadyAtMs: number;
  /** When the last pod that had failed had a token again. */
  readonly allRecoveredAtMs: number;
  /** Pods that had none at the end of the outage, and when the last of them had one again. */
  readonly ranOut: number;
  readonly allBackAtMs: number;
  /** Requests that the provider turned away for want of capacity after the outage. */
  readonly shedAfterOutage: number;
  /** Pod-seconds without a token that may be sent, while the provider was there, after the outage. */
  readonly withoutTokenSeconds: number;
}

interface Pod {
  state: TokenState;
}

type PodEvent = { readonly pod: Pod; readonly event: TokenEvent };

export function runFleet(scenario: FleetScenario): FleetRun {
  const { provider, policy } = scenario;
  const random = seededRandom(scenario.seed);
  const answer = startProvider(provider);
  const queue = new EventQueue<PodEvent>();
  const requestsAtMs: number[] = [];
  let allReadyAtMs = 0;
  let allRecoveredAtMs = provider.outage.toMs;
  let shedAfterOutage = 0;
  let withoutTokenMs = 0;
  let ranOut = 0;
  let allBackAtMs = provider.outage.toMs;

  for (let started = 0; started < scenario.pods; started++) {
    queue.push(scenario.rolloutMs * random(), {
      pod: { state: INITIAL_STATE },
      event: { type: 'credentials_loaded' },
    });
  }

  for (let next = queue.pop(); next !== undefined && next.atMs < scenario.endMs; next = queue.pop()) {
    const { atMs } = next;
    const { pod, event } = next.event;
    const before = pod.state;
    pod.state = reduce(before, event, { now: instant(atMs), random: random(), policy });
    const { grant, due, token } = pod.state;
    if (grant !== undefined && grant !== before.grant) {
      requestsAtMs.push(atMs);
      const { atMs: answeredAtMs, outcome } = answer(atMs);
      if (outcome.result === 'unavailable' && atMs >= provider.outage.toMs) shedAfterOutage += 1;
      queue.push(answeredAtMs, { pod, event: { type: 'grant_ended', id: grant.id, outcome } });
    } else if (due !== undefined && due !== before.due) {
      queue.push(due.at.monotonicMs, { pod, event: { type: 'looked' } });
    }
    if (token !== before.token) {
      if (before.token === undefined) allReadyAtMs = atMs;
      if (atMs >= provider.outage.toMs && before.consecutiveFailures > 0) {
        allRecoveredAtMs = atMs;
        const endedAtMs = before.token?.sendableUntil.monotonicMs ?? 0;
        if (endedAtMs <= provider.outage.toMs) {
          ranOut += 1;
          allBackAtMs = atMs;
        }
        const sinceMs = Math.max(provider.outage.toMs, endedAtMs);
        withoutTokenMs += Math.max(0, atMs - sinceMs);
      }
    }
  }
  return {
    requestsAtMs,
    allReadyAtMs,
    allRecoveredAtMs,
    ranOut,
    allBackAtMs,
    shedAfterOutage,
    withoutTokenSeconds: withoutTokenMs / 1000,
  };
}

/** Requests in each `bucketMs` from `fromMs` to `toMs`; a last bucket that is not whole is left out. */
export function countPerBucket(
  requestsAtMs: readonly number[],
  bucketMs: number,
  fromMs: number,
  toMs: number,
): number[] {
  const counts = new Array<number>(Math.floor((toMs - fromMs) / bucketMs)).fill(0);
  for (const atMs of requestsAtMs) {
    const bucket = Math.floor((atMs - fromMs) / bucketMs);
    if (bucket >= 0 && bucket < counts.length) counts[bucket] = (counts[bucket] as number) + 1;
  }
  return counts;
}

/** Mean time from one renewal to the next in a fleet at rest, where the policy's bounds do not interfere. */
export function meanRenewalPeriodMs(lifetimeMs: number, policy: RenewalPolicy): number {
  return lifetimeMs * (policy.at - policy.jitter / 2);
}

/** Simulated time steps no wall clock: both sides run alike. */
export function instant(atMs: number): Instant {
  return { monotonicMs: atMs, wallMs: atMs };
}
