/** A fleet by way of a broker beside one whose sidecars ask by themselves: what either asks of the provider. */

import { runFleet } from '../fleet.ts';
import { rolloutWithOutage } from '../scenarios.ts';
import { print, printTable } from '../table.ts';
import {
  type BrokeredFleetRun,
  type BrokeredFleetScenario,
  curedAt,
  mostInASecond,
  runBrokeredFleet,
} from './brokered-fleet.ts';
import { brokeredRolloutWithOutage, TOKEN_LIFETIME_MS } from './scenarios.ts';

export interface BrokerSimulation {
  readonly replicas: number;
  readonly credentials: number;
  /** Pods of each. */
  readonly fleets: readonly number[];
  readonly outageMinutes: readonly number[];
}

/** From a provider's return to the last pod's token, and from a broker's. */
export const BACK_WITHIN_MS = { ofProvider: 10_000, ofBroker: 5000 };

const ROLLOUT_MS = 5000;
/** Until the answers to what was asked at its end are there. */
const SETTLED_MS = 1000;
/** After this long nobody has a token. */
const WHOLE_OUTAGE_MS = 360_000;
/** What replicas answer in a second, by fleet: from too little to plenty. */
const CAPACITIES: readonly {
  readonly pods: number;
  readonly replicas: number;
  readonly answersPerSecond: number;
}[] = [
  { pods: 10_000, replicas: 2, answersPerSecond: 500 },
  { pods: 10_000, replicas: 2, answersPerSecond: 1000 },
  { pods: 10_000, replicas: 2, answersPerSecond: 2000 },
  { pods: 100_000, replicas: 2, answersPerSecond: 1000 },
  { pods: 100_000, replicas: 10, answersPerSecond: 1000 },
  { pods: 100_000, replicas: 20, answersPerSecond: 1000 },
];

const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;
const perSecond = (count: number) => `${count < 10 ? count.toFixed(2) : Math.round(count)}/s`;

/** Exits with 1 where a target is missed. */
export async function simulateBroker(simulation: BrokerSimulation): Promise<void> {
  const { replicas, credentials, fleets, outageMinutes } = simulation;
  const bound = replicas * credentials;
  print(
    `Tokens of ${TOKEN_LIFETIME_MS / 1000} s, pods started within ${ROLLOUT_MS / 1000} s, a provider without limits that is away. ` +
      `By broker: ${replicas} replicas, ${credentials} credentials, so ${bound} grants in any second at most.`,
  );
  print();
  print('Requests to the provider, the most in any second but for those at rest, which are a mean:');
  print();
  const rows: string[][] = [];
  const asked: string[][] = [];
  for (const pods of fleets) {
    for (const minutes of outageMinutes) {
      const outageMs = minutes * 60_000;
      rows.push(ownRow(pods, minutes));
      const scenario = brokeredRolloutWithOutage({
        pods,
        replicas,
        credentials,
        rolloutMs: ROLLOUT_MS,
        away: 'provider',
        outageMs,
      });
      const run = await runBrokeredFleet(scenario);
      const figures = grantsOf(scenario, run);
      const most = Math.max(figures.rollout, figures.outage, figures.after);
      const backMs = run.allBackAtMs - curedAt(scenario);
      if (most > bound || backMs > BACK_WITHIN_MS.ofProvider) process.exitCode = 1;
      rows.push([
        String(pods),
        'broker',
        `${minutes} min`,
        perSecond(figures.rest),
        String(figures.rollout),
        String(figures.outage),
        String(figures.after),
        `${most} of ${bound}`,
        String(run.podsThatRanOut),
        seconds(backMs),
      ]);
      asked.push([String(pods), `${minutes} min`, ...asksOf(scenario, run)]);
    }
  }
  printTable(
    [
      'pods',
      'who asks',
      'outage',
      'at rest',
      'in rollout',
      'in outage',
      'after outage',
      'most, of allowed',
      'without token',
      'all back after',
    ],
    rows,
  );
  print('Requests to the broker meanwhile, all replicas together:');
  print();
  printTable(
    ['pods', 'outage', 'at rest', 'most at rest', 'most in rollout', 'in outage', 'most after'],
    asked,
  );
  await printBrokerAway(simulation);
  await printCapacities(credentials, fleets);
  if (process.exitCode === 1) print('A target is missed.');
}

function ownRow(pods: number, minutes: number): string[] {
  const scenario = rolloutWithOutage({
    pods,
    rolloutMs: ROLLOUT_MS,
    tokenLifetimeMs: TOKEN_LIFETIME_MS,
    outageMs: minutes * 60_000,
  });
  const { fromMs, toMs } = scenario.provider.outage;
  const run = runFleet(scenario);
  const most = (from: number, to: number) => String(mostInASecond(run.requestsAtMs, from, to));
  const rolledOutMs = ROLLOUT_MS + SETTLED_MS;
  const atRest = run.requestsAtMs.filter((atMs) => atMs >= rolledOutMs && atMs < fromMs).length;
  return [
    String(pods),
    'sidecars',
    `${minutes} min`,
    perSecond((atRest * 1000) / (fromMs - rolledOutMs)),
    most(0, rolledOutMs),
    most(fromMs, toMs),
    most(toMs, scenario.endMs),
    '–',
    String(run.ranOut),
    seconds(run.allBackAtMs - toMs),
  ];
}

interface Grants {
  /** A second, on average. */
  readonly rest: number;
  /** The most in any second. */
  readonly rollout: number;
  readonly outage: number;
  readonly after: number;
}

export function grantsOf(
  { rolloutMs, provider, brokerOutage, endMs }: BrokeredFleetScenario,
  { grantsAtMs }: BrokeredFleetRun,
): Grants {
  const { fromMs, toMs } = brokerOutage ?? provider.outage;
  const rolledOutMs = rolloutMs + SETTLED_MS;
  const atRest = grantsAtMs.filter((atMs) => atMs >= rolledOutMs && atMs < fromMs).length;
  return {
    rest: (atRest * 1000) / (fromMs - rolledOutMs),
    rollout: mostInASecond(grantsAtMs, 0, rolledOutMs),
    outage: mostInASecond(grantsAtMs, fromMs, toMs),
    after: mostInASecond(grantsAtMs, toMs, endMs),
  };
}

function asksOf(
  { rolloutMs, provider, endMs }: BrokeredFleetScenario,
  { asksPerSecond }: BrokeredFleetRun,
): readonly string[] {
  const { fromMs, toMs } = provider.outage;
  const between = (from: number, to: number) =>
    asksPerSecond.slice(Math.ceil(from / 1000), Math.floor(to / 1000));
  const mean = (counts: readonly number[]) => counts.reduce((sum, count) => sum + count, 0) / counts.length;
  const rest = between(rolloutMs + TOKEN_LIFETIME_MS, fromMs);
  return [
    perSecond(mean(rest)),
    perSecond(Math.max(...rest)),
    perSecond(Math.max(...between(0, rolloutMs + SETTLED_MS))),
    perSecond(mean(between(toMs - 10_000, toMs))),
    perSecond(Math.max(...between(toMs, endMs))),
  ];
}

async function printBrokerAway({ replicas, credentials, fleets }: BrokerSimulation): Promise<void> {
  const rows: string[][] = [];
  for (const pods of fleets) {
    for (const outageMs of [60_000, WHOLE_OUTAGE_MS]) {
      const scenario = brokeredRolloutWithOutage({
        pods,
        replicas,
        credentials,
        rolloutMs: ROLLOUT_MS,
        away: 'broker',
        outageMs,
      });
      const run = await runBrokeredFleet(scenario);
      const backMs = run.allBackAtMs - curedAt(scenario);
      if (backMs > BACK_WITHIN_MS.ofBroker) process.exitCode = 1;
      rows.push([String(pods), `${outageMs / 60_000} min`, String(run.podsThatRanOut), seconds(backMs)]);
    }
  }
  print('A broker that is away, all replicas of it:');
  print();
  printTable(['pods', 'outage', 'without token', 'all back after'], rows);
}

async function printCapacities(credentials: number, fleets: readonly number[]): Promise<void> {
  const rows: string[][] = [];
  for (const { pods, replicas, answersPerSecond } of CAPACITIES) {
    if (!fleets.includes(pods)) continue;
    const scenario = brokeredRolloutWithOutage({
      pods,
      replicas,
      credentials,
      rolloutMs: ROLLOUT_MS,
      away: 'provider',
      outageMs: WHOLE_OUTAGE_MS,
      answersPerSecond,
    });
    const run = await runBrokeredFleet(scenario);
    const figures = grantsOf(scenario, run);
    const most = Math.max(figures.rollout, figures.outage, figures.after);
    if (most > replicas * credentials) process.exitCode = 1;
    rows.push([
      String(pods),
      `${replicas} × ${answersPerSecond}/s`,
      seconds(run.allReadyAtMs),
      seconds(run.allBackAtMs - curedAt(scenario)),
      String(run.turnedAway),
      `${most} of ${replicas * credentials}`,
    ]);
  }
  print(
    `Replicas that answer so many requests a second, an outage of the provider of ${WHOLE_OUTAGE_MS / 60_000} min:`,
  );
  print();
  printTable(
    ['pods', 'replicas', 'all ready after', 'all back after', 'turned away in all', 'grants, of allowed'],
    rows,
  );
}
