import { describe, expect, it } from 'vitest';
import { countPerBucket, meanRenewalPeriodMs, runFleet } from '../../scripts/simulation/fleet.ts';
import { runRejectedRotation } from '../../scripts/simulation/rejected-rotation.ts';
import { mostAllowed, reportOn } from '../../scripts/simulation/report.ts';
import { rolloutWithOutage, steadyPerSecond } from '../../scripts/simulation/scenarios.ts';

describe('a thousand pods started within five seconds', () => {
  const scenario = rolloutWithOutage({ pods: 1000, rolloutMs: 5000, tokenLifetimeMs: 300_000 });
  const run = runFleet(scenario);
  const report = reportOn(scenario, run);

  it('do not renew at the same time', () => {
    expect(report.peakAfterRollout).toBeLessThan(3);
    expect(report.peakAfterRollout).toBeGreaterThan(1);
  });

  it('recover from a ten-minute outage spread over one retry interval, and do not renew at the same time afterwards', () => {
    expect(report.mostAfterOutage).toBeLessThanOrEqual(mostAllowed(scenario, report).afterOutage);
    const period = meanRenewalPeriodMs(300_000, scenario.policy);
    const { toMs } = scenario.provider.outage;
    const after = countPerBucket(run.requestsAtMs, report.bucketMs, toMs + 0.2 * period, scenario.endMs);
    expect(Math.max(...after) / report.steadyPerBucket).toBeLessThan(3);
  });

  it('all recover within 30 s', () => {
    const { toMs } = scenario.provider.outage;
    expect(run.allRecoveredAtMs).toBeGreaterThan(toMs);
    expect(run.allRecoveredAtMs - toMs).toBeLessThan(31_000);
  });
});

it('with a recovery of 120 s all pods recover within 121 s without a load peak', () => {
  const scenario = rolloutWithOutage({
    pods: 1000,
    rolloutMs: 5000,
    tokenLifetimeMs: 300_000,
    recoveryMs: 120_000,
  });
  const run = runFleet(scenario);
  expect(reportOn(scenario, run).peakAfterOutage).toBeLessThan(3);
  expect(run.allRecoveredAtMs - scenario.provider.outage.toMs).toBeLessThan(121_000);
});

it('a provider with three times the needed capacity refuses no pod after an outage', () => {
  const options = { pods: 1000, rolloutMs: 600_000, tokenLifetimeMs: 300_000, recoveryMs: 120_000 };
  const capacityPerSecond = 3 * steadyPerSecond(rolloutWithOutage(options));
  expect(runFleet(rolloutWithOutage({ ...options, capacityPerSecond })).shedAfterOutage).toBe(0);
});

it.each([30, 120, 300])(
  'no pod loses its token over a secret rotation that the provider follows after %i s',
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
