import { describe, expect, it } from 'vitest';
import { runFleet } from '../../scripts/simulation/fleet.ts';
import { runRejectedRotation } from '../../scripts/simulation/rejected-rotation.ts';
import { reportOn } from '../../scripts/simulation/report.ts';
import { rolloutWithOutage, steadyPerSecond } from '../../scripts/simulation/scenarios.ts';

describe('a thousand pods started within five seconds', () => {
  const scenario = rolloutWithOutage({ pods: 1000, rolloutMs: 5000, tokenLifetimeMs: 300_000 });
  const run = runFleet(scenario);
  const report = reportOn(scenario, run);

  it('do not renew in step', () => {
    expect(report.peakAfterRollout).toBeLessThan(3);
    expect(report.peakAfterRollout).toBeGreaterThan(1);
  });

  it('do not return in step from an outage of ten minutes, nor renew in step after', () => {
    expect(report.peakAfterOutage).toBeLessThan(3);
  });

  it('are all back within one backoff step', () => {
    const { toMs } = scenario.provider.outage;
    expect(run.allRecoveredAtMs).toBeGreaterThan(toMs);
    expect(run.allRecoveredAtMs - toMs).toBeLessThan(121_000);
  });
});

it('a provider with three times the capacity that the fleet needs at rest turns none away after an outage', () => {
  const options = { pods: 1000, rolloutMs: 600_000, tokenLifetimeMs: 300_000 };
  const capacityPerSecond = 3 * steadyPerSecond(rolloutWithOutage(options));
  expect(runFleet(rolloutWithOutage({ ...options, capacityPerSecond })).shedAfterOutage).toBe(0);
});

it.each([30, 120, 300])(
  'no pod loses its token over a rotation that the provider follows after %i s',
  (seconds) => {
    const run = runRejectedRotation({
      pods: 1000,
      tokenLifetimeMs: 300_000,
      providerBehindMs: seconds * 1000,
      seed: 2,
    });
    expect(run.lostToken).toBe(0);
    expect(run.mostRejections).toBeGreaterThan(1);
    expect(run.mostRejections).toBeLessThan(20);
  },
);
