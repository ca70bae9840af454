import type { BrokeredFleetScenario } from './brokered-fleet.ts';

export const TOKEN_LIFETIME_MS = 300_000;
const REST_MS = 1_500_000;
/** Until the grants that were lined up by an outage have spread again. */
const AFTER_MS = 600_000;
/** More than anybody asks for, so that what is seen is the fleet's doing. */
const UNLIMITED_PER_SECOND = 1_000_000;

/** A rollout, rest, a provider or a broker that is away, and a while after. Durations are ms. */
export function brokeredRolloutWithOutage(options: {
  readonly pods: number;
  readonly replicas: number;
  readonly credentials: number;
  readonly rolloutMs: number;
  readonly away: 'provider' | 'broker';
  readonly outageMs: number;
  readonly answersPerSecond?: number;
  readonly seed?: number;
}): BrokeredFleetScenario {
  const { pods, replicas, credentials, rolloutMs, away, outageMs } = options;
  const fromMs = rolloutMs + REST_MS;
  const toMs = fromMs + outageMs;
  const outage = { fromMs, toMs };
  return {
    pods,
    replicas,
    credentials,
    rolloutMs,
    endMs: toMs + AFTER_MS,
    provider: {
      capacityPerSecond: UNLIMITED_PER_SECOND,
      longestWaitMs: 2000,
      roundTripMs: 50,
      tokenLifetimeMs: TOKEN_LIFETIME_MS,
      outage: away === 'provider' ? outage : { fromMs: toMs, toMs },
    },
    ...(away === 'broker' ? { brokerOutage: outage } : {}),
    answersPerSecond: options.answersPerSecond ?? UNLIMITED_PER_SECOND,
    seed: options.seed ?? 1,
  };
}
