import { describe, expect, it } from 'vitest';
import {
  curedAt,
  mostInASecond,
  runBrokeredFleet,
} from '../../../scripts/simulation/broker/brokered-fleet.ts';
import { brokeredRolloutWithOutage } from '../../../scripts/simulation/broker/scenarios.ts';
import { BACK_WITHIN_MS } from '../../../scripts/simulation/broker/tables.ts';
import { volume } from '../../support/volume.ts';

const FLEET = { pods: 300, replicas: 2, credentials: 1, rolloutMs: 5000 };

describe.each([1, 4, 10])('while the provider is away for %i minutes', (minutes) => {
  const away = { ...FLEET, away: 'provider', outageMs: minutes * 60_000 } as const;

  it.each([1, 2, 3].slice(0, volume(1, 3)))(
    'each replica asks it once in any second at most, before, meanwhile and after (seed %i)',
    async (seed) => {
      const { grantsAtMs } = await runBrokeredFleet(
        brokeredRolloutWithOutage({ ...away, replicas: 1, seed }),
      );
      expect(mostInASecond(grantsAtMs, 0, Number.POSITIVE_INFINITY)).toBe(1);
    },
  );

  it('all pods have tokens again within 10 s of its return', async () => {
    const scenario = brokeredRolloutWithOutage(away);
    const run = await runBrokeredFleet(scenario);
    expect(run.podsThatRanOut).toBe(minutes >= 5 ? FLEET.pods : 0);
    expect(run.allBackAtMs - curedAt(scenario)).toBeLessThanOrEqual(BACK_WITHIN_MS.ofProvider);
    expect(run.turnedAway).toBe(0);
  });
});

it('all pods have tokens again within 5 s of the return of a broker that was away', async () => {
  const scenario = brokeredRolloutWithOutage({ ...FLEET, away: 'broker', outageMs: 600_000 });
  const run = await runBrokeredFleet(scenario);
  expect(run.podsThatRanOut).toBe(FLEET.pods);
  expect(run.allBackAtMs - curedAt(scenario)).toBeLessThanOrEqual(BACK_WITHIN_MS.ofBroker);
});

it('replicas that cannot answer everybody turn some away, and have all back later', async () => {
  const scenario = brokeredRolloutWithOutage({
    ...FLEET,
    pods: 3000,
    away: 'provider',
    outageMs: 360_000,
    answersPerSecond: 100,
  });
  const run = await runBrokeredFleet(scenario);
  expect(run.turnedAway).toBeGreaterThan(0);
  expect(run.podsThatRanOut).toBe(3000);
  expect(run.allBackAtMs - curedAt(scenario)).toBeGreaterThan(BACK_WITHIN_MS.ofProvider);
  expect(run.allBackAtMs - curedAt(scenario)).toBeLessThan(60_000);
  expect(mostInASecond(run.grantsAtMs, 0, Number.POSITIVE_INFINITY)).toBeLessThanOrEqual(FLEET.replicas);
});
