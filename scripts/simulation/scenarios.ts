import { DEFAULT_RENEWAL } from '../../src/config/renewal.ts';
import { type FleetScenario, meanRenewalPeriodMs } from './fleet.ts';

const OUTAGE_MS = 600_000;

/** More than any fleet asks for, so that what is seen is the fleet's doing and not the provider's. */
const UNLIMITED_PER_SECOND = 1_000_000;

/** A rollout, rest, an outage (of ten minutes unless given), and some renewal periods after. Durations are ms. */
export function rolloutWithOutage(options: {
  readonly pods: number;
  readonly rolloutMs: number;
  readonly tokenLifetimeMs: number;
  readonly outageMs?: number;
  readonly capacityPerSecond?: number;
  /** Longest step of a pod without a token; the default of the configuration unless given. */
  readonly recoveryMs?: number;
  readonly seed?: number;
}): FleetScenario {
  const periodMs = meanRenewalPeriodMs(options.tokenLifetimeMs, DEFAULT_RENEWAL);
  const fromMs = options.rolloutMs + Math.max(1_500_000, 3 * periodMs);
  const toMs = fromMs + (options.outageMs ?? OUTAGE_MS);
  return {
    pods: options.pods,
    rolloutMs: options.rolloutMs,
    endMs: toMs + Math.max(1_500_000, 3 * periodMs),
    provider: {
      capacityPerSecond: options.capacityPerSecond ?? UNLIMITED_PER_SECOND,
      longestWaitMs: 2000,
      roundTripMs: 50,
      tokenLifetimeMs: options.tokenLifetimeMs,
      outage: { fromMs, toMs },
    },
    policy: { ...DEFAULT_RENEWAL, recoveryMs: options.recoveryMs ?? DEFAULT_RENEWAL.recoveryMs },
    seed: options.seed ?? 1,
  };
}

/** Grants a second that a fleet at rest asks for. */
export function steadyPerSecond({ pods, provider, policy }: FleetScenario): number {
  return (pods * 1000) / meanRenewalPeriodMs(provider.tokenLifetimeMs, policy);
}
