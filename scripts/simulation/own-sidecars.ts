/** What a fleet's own engines ask of one provider: tables, and docs/images/provider-load.svg. */

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { drawChart, type Panel } from './chart.ts';
import { runFleet } from './fleet.ts';
import { runRejectedRotation } from './rejected-rotation.ts';
import { BUCKETS_PER_PERIOD, mostAllowed, reportOn } from './report.ts';
import { rolloutWithOutage, steadyPerSecond } from './scenarios.ts';
import { print, printTable } from './table.ts';

const IMAGE = join(import.meta.dirname, '../../docs/images/provider-load.svg');
const QUICK_MS = 5000;
const REALISTIC_MS = 600_000;
const LIFETIME_MS = 300_000;

const seconds = (ms: number) => `${Math.round(ms / 1000)} s`;
const times = (ratio: number) => `${ratio.toFixed(2)}×`;

/** Exits with 1 where a fleet asks for more than is allowed, or loses its tokens. */
export async function simulateOwnSidecars(): Promise<void> {
  print(
    `Peaks in multiples of the steady load, counted over 1/${BUCKETS_PER_PERIOD} of a mean renewal period.`,
  );
  print(
    'A small fleet has a handful of requests in each, so that its peaks are counting noise: see the last column.',
  );
  print();

  const panels: Panel[] = [];
  const fleets = [1, 100, 10_000].flatMap((pods) =>
    [QUICK_MS, REALISTIC_MS].map((rolloutMs) => {
      const scenario = rolloutWithOutage({ pods, rolloutMs, tokenLifetimeMs: LIFETIME_MS });
      const run = runFleet(scenario);
      const report = reportOn(scenario, run);
      const allowed = mostAllowed(scenario, report);
      if (report.mostAfterRollout > allowed.afterRollout) process.exitCode = 1;
      if (report.mostAfterOutage > allowed.afterOutage) process.exitCode = 1;
      if (pods === 10_000) {
        panels.push({
          title: `${pods} pods started within ${seconds(rolloutMs)}, tokens of ${seconds(LIFETIME_MS)}: requests to the provider, 1× = ${steadyPerSecond(scenario).toFixed(1)}/s`,
          scenario,
          report,
        });
      }
      return [
        String(pods),
        seconds(rolloutMs),
        `${steadyPerSecond(scenario).toFixed(3)}/s`,
        times(report.peakInRollout),
        times(report.peakAfterRollout),
        times(report.peakInOutage),
        times(report.peakAfterOutage),
        seconds(run.allRecoveredAtMs - scenario.provider.outage.toMs),
        `${report.mostAfterRollout} of ${allowed.afterRollout.toFixed(0)}`,
        `${report.mostAfterOutage} of ${allowed.afterOutage.toFixed(0)}`,
      ];
    }),
  );
  print(`Tokens of ${seconds(LIFETIME_MS)}, an outage of 10 min, a provider without limits:`);
  print();
  printTable(
    [
      'pods',
      'rollout',
      'steady',
      'in rollout',
      'after rollout',
      'in outage',
      'after outage',
      'all back after',
      'busiest after rollout',
      'busiest after outage',
    ],
    fleets,
  );

  const recoveries = [1, 10, 100, 1000, 10_000].flatMap((pods) =>
    [30_000, 60_000, 120_000, 300_000].map((recoveryMs) => {
      const options = { pods, rolloutMs: REALISTIC_MS, tokenLifetimeMs: LIFETIME_MS, recoveryMs };
      const scenario = rolloutWithOutage(options);
      const run = runFleet(scenario);
      const report = reportOn(scenario, run);
      const backAfterMs = run.allRecoveredAtMs - scenario.provider.outage.toMs;
      if (backAfterMs > recoveryMs + 1000) process.exitCode = 1;
      if (report.mostAfterOutage > mostAllowed(scenario, report).afterOutage) process.exitCode = 1;
      return [
        String(pods),
        seconds(recoveryMs),
        `${steadyPerSecond(scenario).toFixed(2)}/s`,
        `${((report.mostAfterOutage * 1000) / report.bucketMs).toFixed(1)}/s`,
        times(report.peakAfterOutage),
        seconds(backAfterMs),
        `${(run.withoutTokenSeconds / pods).toFixed(1)} s`,
      ];
    }),
  );
  print('renewal.recovery: tokens of 300 s, an outage of 10 min, a provider without limits:');
  print();
  printTable(
    ['pods', 'recovery', 'steady', 'after outage', 'that is', 'all back after', 'mean without token'],
    recoveries,
  );

  const lifetimes = [60_000, 300_000, 900_000, 3_600_000].map((tokenLifetimeMs) => {
    const scenario = rolloutWithOutage({ pods: 10_000, rolloutMs: REALISTIC_MS, tokenLifetimeMs });
    const run = runFleet(scenario);
    const report = reportOn(scenario, run);
    return [
      seconds(tokenLifetimeMs),
      `${steadyPerSecond(scenario).toFixed(1)}/s`,
      times(report.peakAfterRollout),
      times(report.peakInOutage),
      times(report.peakAfterOutage),
      `${((report.mostAfterOutage * 1000) / report.bucketMs).toFixed(0)}/s`,
      seconds(run.allRecoveredAtMs - scenario.provider.outage.toMs),
      `${(run.withoutTokenSeconds / scenario.pods).toFixed(1)} s`,
    ];
  });
  print('10000 pods, tokens of other lifetimes:');
  print();
  printTable(
    [
      'lifetime',
      'steady',
      'after rollout',
      'in outage',
      'after outage',
      'that is',
      'all back after',
      'mean without token',
    ],
    lifetimes,
  );

  const capacities = [1.5, 2, 3, 6].map((factor) => {
    const unlimited = rolloutWithOutage({ pods: 10_000, rolloutMs: QUICK_MS, tokenLifetimeMs: LIFETIME_MS });
    const capacityPerSecond = factor * steadyPerSecond(unlimited);
    const scenario = rolloutWithOutage({
      pods: 10_000,
      rolloutMs: QUICK_MS,
      tokenLifetimeMs: LIFETIME_MS,
      capacityPerSecond,
    });
    const run = runFleet(scenario);
    return [
      `${factor}× = ${capacityPerSecond.toFixed(0)}/s`,
      seconds(run.allReadyAtMs),
      seconds(run.allRecoveredAtMs - scenario.provider.outage.toMs),
      String(run.shedAfterOutage),
    ];
  });
  print(
    '10000 pods, tokens of 300 s, all started within 5 s, a provider that queues for 2 s and turns away the rest:',
  );
  print();
  printTable(['capacity', 'all ready after', 'all back after', 'turned away after outage'], capacities);

  const outages = [1, 2, 3, 5, 10, 30].map((minutes) => {
    const options = {
      pods: 10_000,
      rolloutMs: REALISTIC_MS,
      tokenLifetimeMs: LIFETIME_MS,
      outageMs: minutes * 60_000,
    };
    const scenario = rolloutWithOutage(options);
    const report = reportOn(scenario, runFleet(scenario));
    const limited = rolloutWithOutage({ ...options, capacityPerSecond: 3 * steadyPerSecond(scenario) });
    const run = runFleet(limited);
    return [
      `${minutes} min`,
      times(report.peakInOutage),
      times(report.peakAfterOutage),
      String(run.shedAfterOutage),
      seconds(run.allRecoveredAtMs - limited.provider.outage.toMs),
    ];
  });
  print('10000 pods, tokens of 300 s, outages of other lengths; the last two columns at a capacity of 3×:');
  print();
  printTable(['outage', 'in outage', 'after outage', 'turned away', 'all back after'], outages);

  const rotations = [30, 60, 120, 180, 300, 900].map((behindSeconds) => {
    const run = runRejectedRotation({
      pods: 10_000,
      tokenLifetimeMs: LIFETIME_MS,
      providerBehindMs: behindSeconds * 1000,
      seed: 1,
    });
    if (run.lostToken > 0) process.exitCode = 1;
    return [
      `${behindSeconds} s`,
      `${(run.lostToken * 100).toFixed(1)} %`,
      seconds(run.longestWithoutMs),
      String(run.mostRejections),
    ];
  });
  print('10000 pods, tokens of 300 s, a Secret that is replaced before the provider takes it:');
  print();
  printTable(
    ['provider behind', 'pods that lost their token', 'for at most', 'most rejections of a pod'],
    rotations,
  );

  if (process.exitCode === 1) print('A fleet asks for more than is allowed, or loses its tokens.');
  await mkdir(join(IMAGE, '..'), { recursive: true });
  await writeFile(IMAGE, drawChart(panels));
  print('drawn: docs/images/provider-load.svg');
}
