import type { Changes } from './evenly.ts';
import type { MemoryPoints } from './memory-record.ts';
import { successes } from './sidecar-figures.ts';
import type { Exit } from './sidecar-process.ts';
import type { Tally, TallyRow } from './tally.ts';

/** Everything that was measured in one run. Times in milliseconds, memory in bytes. */
export interface SoakFigures {
  /** How long the load lasted. */
  readonly loadMs: number;
  /** Whether it was stopped before its time. */
  readonly endedEarly: boolean;
  readonly tokenLifetimeMs: number;
  /** Short exchanges a second that were asked for. */
  readonly rate: number;
  readonly shortExchanges: number;
  readonly tally: Tally;
  /** By `reason result`. */
  readonly grants: ReadonlyMap<string, number>;
  readonly tokensSeen: number;
  /** By reason. */
  readonly refusals: ReadonlyMap<string, number>;
  readonly rotationsAsked: number;
  readonly rotations: Changes;
  readonly reloadsAsked: number;
  readonly reloads: Changes;
  /** Unknown when it died. */
  readonly openAtSidecar: number | undefined;
  readonly openAtApi: number;
  readonly memory: MemoryPoints | undefined;
  readonly logLines: number;
  readonly logLeaks: number;
  readonly diedEarly: boolean;
  readonly exit: Exit;
  readonly exitMs: number;
}

export interface Criterion {
  readonly name: string;
  readonly passed: boolean;
  readonly figure: string;
}

const MAX_GROWTH_BYTES = 15e6;

/** In a shorter run the heap is still growing to its size: growth says nothing. */
const MIN_JUDGED_MS = 300_000;

/** The latest that a token is renewed, as a part of its life: the sidecar's default without jitter. */
const MAX_RENEWAL = 0.75;

/** How much of the rate is reached at least: clients that all wait for answers lose their turns for good. */
const MIN_OF_RATE = 0.5;

export function judge(stats: SoakFigures): Criterion[] {
  const { tally, grants, refusals, exit } = stats;
  const { begun, delaysMs } = stats.rotations;
  const rotations = stats.endedEarly ? begun : stats.rotationsAsked;
  const { reloads } = stats;
  const reloadsDue = stats.endedEarly ? reloads.begun : stats.reloadsAsked;
  const obtained = successes(grants);
  const renewals = Math.max(0, obtained - 1);
  const expected = Math.floor(stats.loadMs / (stats.tokenLifetimeMs * MAX_RENEWAL));
  const exchangesDue = Math.floor((stats.rate * stats.loadMs * MIN_OF_RATE) / 1000);
  const refused = [...refusals.values()].reduce((sum, count) => sum + count, 0);
  const exitStatus = exit.code ?? exit.signal;
  return [
    {
      name: 'failed requests',
      passed: tally.failed === 0 && tally.done > 0,
      figure: `${tally.failed} of ${tally.done + tally.failed}`,
    },
    {
      name: 'short exchanges',
      passed: stats.shortExchanges >= exchangesDue,
      figure: `${stats.shortExchanges}, at least ${exchangesDue} expected (${MIN_OF_RATE * 100} % of ${stats.rate} a second)`,
    },
    {
      name: 'renewals',
      passed: renewals >= expected,
      figure: `${renewals}, at least ${expected} expected (${describeCounts(grants)})`,
    },
    {
      name: 'rotations taken',
      passed: delaysMs.length === rotations,
      figure: `${delaysMs.length} of ${rotations}${slowest(delaysMs)}`,
    },
    {
      name: 'configurations taken',
      passed: reloads.delaysMs.length === reloadsDue,
      figure: `${reloads.delaysMs.length} of ${reloadsDue}${slowest(reloads.delaysMs)}`,
    },
    {
      name: 'tokens seen by the API',
      passed: stats.tokensSeen === obtained && obtained > 0,
      figure: `${stats.tokensSeen} of ${obtained}`,
    },
    {
      name: 'tokens refused by the API',
      passed: refused === 0,
      figure: refused === 0 ? '0' : describeCounts(refusals),
    },
    {
      name: 'left open after the load',
      passed: stats.openAtSidecar === 0 && stats.openAtApi === 0,
      figure: `${stats.openAtSidecar ?? 'unknown'} at the sidecar, ${stats.openAtApi} at the API`,
    },
    judgeMemory(stats),
    {
      name: 'tokens and secrets in the log',
      passed: stats.logLeaks === 0,
      figure: `${stats.logLeaks} in ${stats.logLines} lines`,
    },
    {
      name: 'exit on SIGTERM',
      passed: exit.code === 0 && !stats.diedEarly,
      figure: stats.diedEarly
        ? `ended with ${exitStatus} before it was told to`
        : `${exitStatus} after ${Math.round(stats.exitMs)} ms`,
    },
  ];
}

function judgeMemory({ memory, loadMs }: SoakFigures): Criterion {
  const name = 'memory of the sidecar';
  if (memory === undefined) return { name, passed: true, figure: 'not measured' };
  const { start, warm, end } = memory;
  const judged = loadMs >= MIN_JUDGED_MS;
  const bound = judged ? `at most +${megabytes(MAX_GROWTH_BYTES)} from warm` : 'too short a run to judge it';
  return {
    name,
    passed: !judged || end - warm <= MAX_GROWTH_BYTES,
    figure: `${megabytes(start)} MB at the start, ${megabytes(warm)} warm, ${megabytes(end)} at the end; ${bound}`,
  };
}

export function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1);
}

export function formatTable(rows: readonly TallyRow[]): string {
  const number = (value: number | undefined): string => (value === undefined ? '' : value.toFixed(1));
  const cells = rows.map(({ kind, done, failed, latencies }) => [
    kind,
    String(done),
    String(failed),
    number(latencies?.p50),
    number(latencies?.p99),
    number(latencies?.max),
  ]);
  return [['exchange', 'done', 'failed', 'p50 ms', 'p99 ms', 'max ms'], ...cells]
    .map(([kind = '', ...stats]) => kind.padEnd(22) + stats.map((cell) => cell.padStart(10)).join(''))
    .join('\n');
}

export function formatCriterion({ name, passed, figure }: Criterion): string {
  return `${passed ? 'pass' : 'FAIL'}  ${name.padEnd(30)}${figure}`;
}

function describeCounts(counts: ReadonlyMap<string, number>): string {
  return [...counts].map(([name, count]) => `${name} ${count}`).join(', ');
}

function slowest(delays: readonly number[]): string {
  return delays.length === 0 ? '' : `, the slowest after ${Math.round(Math.max(...delays))} ms`;
}
