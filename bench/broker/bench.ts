/**
 * What an answer of the broker costs, beside this project's issuer and Keycloak, in one run. See README.md beside this file.
 *
 *     npm run bench:broker -- [--only broker,issuer] [--seconds 5] [--repetitions 3] [--no-build]
 */

import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { shareOutCores } from '../cores.ts';
import { describeMachine, type Machine, runName } from '../machine.ts';
import { runPinned } from '../pinned-process.ts';
import { cpuSeconds, type Memory, memoryOf } from '../process-figures.ts';
import { CACHE } from '../programs.ts';
import { median } from '../results.ts';
import { buildSidecar, endOnInterrupt, print } from '../run.ts';
import { machineText, verdictTable } from '../table.ts';
import { bounded, MEGABYTE, megabytes, type Verdict } from '../targets.ts';
import { startTokenEndpoint } from '../token-endpoint.ts';
import type { AskerFigures, AskerSettings, Form } from './askers.ts';
import { ALL_CONTESTANTS, type Contestant, type ContestantKind, type Dependencies } from './contestants.ts';

const ASKERS = join(import.meta.dirname, 'askers.ts');
/** Whose tokens are known. */
const CALLERS = 10_000;
/** Of them ask while it is measured: few enough to be reviewed anew in between, enough to stay within their rates. */
const ASKING = 2000;
const CONNECTIONS = 32;
const RATE_PER_SECOND = 1000;
/** Nothing that is measured goes on for as long. */
const GRACE_MS = 120_000;

interface Phase {
  readonly answers: number;
  readonly failed: number;
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

interface Repetition {
  /** As fast as they are answered. */
  readonly kept: Phase;
  readonly fresh: Phase;
  /** At a fixed rate. */
  readonly keptAtRate: Phase;
  readonly freshAtRate: Phase;
}

interface Figures {
  readonly work: string;
  readonly idle: Memory;
  /** Every caller asks once, over kept connections: the broker has to verify and review each. */
  readonly first: Phase;
  /** After that. */
  readonly known: Memory;
  /** The highest, at the end of a phase. */
  readonly loaded: Memory;
  readonly repetitions: readonly Repetition[];
}

interface Result {
  readonly startedAt: string;
  readonly machine: Machine;
  readonly contestants: Readonly<Record<string, Figures>>;
}

endOnInterrupt();
const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    seconds: { type: 'string', default: '5' },
    repetitions: { type: 'string', default: '3' },
    'no-build': { type: 'boolean', default: false },
  },
});
const seconds = wholeNumber('seconds', values.seconds);
const repetitions = wholeNumber('repetitions', values.repetitions);
const kinds = ALL_CONTESTANTS.filter(({ name }) => values.only?.split(',').includes(name) ?? true);
if (kinds.length === 0)
  throw new Error(`--only must name some of ${ALL_CONTESTANTS.map(({ name }) => name)}`);
if (!values['no-build']) await buildSidecar();
const cores = shareOutCores();
// This process's own work is not to disturb what is measured.
execFileSync('taskset', ['-a', '-c', '-p', cores.load, String(process.pid)]);
await main();

async function main(): Promise<void> {
  const startedAt = new Date().toISOString();
  const machine = await describeMachine([]);
  print(machineText(machine));
  print(
    `what is measured on core ${cores.proxy}, who asks on ${cores.load}; load before: ${machine.loadAverageBefore.toFixed(1)}\n`,
  );
  const contestants: Record<string, Figures> = {};
  for (const kind of kinds) {
    const figures = await measure(kind).catch((error: Error) => error);
    if (figures instanceof Error)
      print(`notice: ${kind.name} is left out: ${figures.message.split('\n')[0]}`);
    else contestants[kind.name] = figures;
  }
  print(table(contestants));
  const result: Result = { startedAt, machine, contestants };
  if (contestants['broker'] !== undefined) print(`\n${verdictTable(judge(contestants['broker']))}`);
  await publish(result);
}

async function measure(kind: ContestantKind): Promise<Figures> {
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-bench-broker-'));
  const provider = await startTokenEndpoint();
  try {
    const surroundings: Dependencies = { directory, cores, provider, callers: CALLERS };
    const contestant = await kind.start(surroundings);
    try {
      return await measureRunning(kind, contestant, directory);
    } finally {
      await contestant.close();
    }
  } finally {
    await provider.close();
    await rm(directory, { recursive: true, force: true });
  }
}

async function measureRunning(
  kind: ContestantKind,
  contestant: Contestant,
  directory: string,
): Promise<Figures> {
  const { pid, forms } = contestant;
  const idle = memoryOf(pid);
  let next = 0;
  let loaded = idle;

  async function phase(
    load: AskerSettings['load'],
    keepAlive: boolean,
    chosen: readonly Form[],
  ): Promise<Phase> {
    const { port, tls, path } = contestant;
    const file = join(directory, 'askers.json');
    const settings: AskerSettings = {
      port,
      ...(tls === undefined ? {} : { tls }),
      path,
      forms: chosen,
      connections: CONNECTIONS,
      keepAlive,
      load,
    };
    await writeFile(file, JSON.stringify(settings));
    const before = cpuSeconds(pid);
    const output = await runPinned(
      { command: process.execPath, args: [ASKERS, file], cores: cores.load },
      seconds * 1000 + GRACE_MS,
    );
    const figures = JSON.parse(output) as AskerFigures;
    const used = cpuSeconds(pid) - before;
    const now = memoryOf(pid);
    if (now.residentBytes > loaded.residentBytes) loaded = now;
    return { ...figures, cpuSeconds: used };
  }

  /** After whoever asks in it was reviewed. */
  async function measured(load: AskerSettings['load'], keepAlive: boolean): Promise<Phase> {
    const chosen = Array.from(
      { length: Math.min(ASKING, forms.length) },
      (_, index) => forms[(next + index) % forms.length] as Form,
    );
    next += ASKING;
    await phase({ kind: 'once' }, true, chosen);
    return await phase(load, keepAlive, chosen);
  }

  // Also those that take one client's form have their code compiled by as many requests.
  const all = Array.from({ length: CALLERS }, (_, index) => forms[index % forms.length] as Form);
  const first = await phase({ kind: 'once' }, true, all);
  if (first.failed > 0) print(`notice: ${kind.name}: ${first.failed} of ${CALLERS} first requests failed`);
  const known = memoryOf(pid);
  const done: Repetition[] = [];
  for (let repetition = 0; repetition < repetitions; repetition++) {
    const atRate = { kind: 'rate', perSecond: RATE_PER_SECOND, seconds } as const;
    done.push({
      kept: await measured({ kind: 'closed', seconds }, true),
      fresh: await measured({ kind: 'closed', seconds }, false),
      keptAtRate: await measured(atRate, true),
      freshAtRate: await measured(atRate, false),
    });
  }
  return { work: kind.work, idle, first, known, loaded, repetitions: done };
}

/** Medians of the repetitions. */
function summary({ first, repetitions: each }: Figures) {
  const of = (read: (one: Repetition) => number): number => median(each.map(read));
  const perCpuSecond = ({ answers, cpuSeconds: cpu }: Phase): number => answers / cpu;
  const perSecond = ({ answers, seconds: took }: Phase): number => answers / took;
  return {
    first: perCpuSecond(first),
    kept: of(({ kept }) => perCpuSecond(kept)),
    keptPerSecond: of(({ kept }) => perSecond(kept)),
    fresh: of(({ fresh }) => perCpuSecond(fresh)),
    freshPerSecond: of(({ fresh }) => perSecond(fresh)),
    keptP50Ms: of(({ keptAtRate }) => keptAtRate.p50Ms),
    keptP99Ms: of(({ keptAtRate }) => keptAtRate.p99Ms),
    freshP50Ms: of(({ freshAtRate }) => freshAtRate.p50Ms),
    freshP99Ms: of(({ freshAtRate }) => freshAtRate.p99Ms),
    failed: each
      .flatMap((one) => Object.values(one) as Phase[])
      .reduce((total, { failed: count }) => total + count, 0),
  };
}

function table(contestants: Readonly<Record<string, Figures>>): string {
  const head = [
    '',
    'answers per CPU second: kept connections',
    'a connection each',
    'callers unknown, kept',
    `p50, p99 at ${RATE_PER_SECOND}/s: kept`,
    'a connection each',
    'idle, known, loaded MB',
    'failed',
  ];
  const rows = Object.entries(contestants).map(([name, figures]) => {
    const of = summary(figures);
    const { idle, known, loaded } = figures;
    return [
      name,
      `${of.kept.toFixed(0)} (${of.keptPerSecond.toFixed(0)}/s)`,
      `${of.fresh.toFixed(0)} (${of.freshPerSecond.toFixed(0)}/s)`,
      of.first.toFixed(0),
      `${of.keptP50Ms.toFixed(1)}, ${of.keptP99Ms.toFixed(1)} ms`,
      `${of.freshP50Ms.toFixed(1)}, ${of.freshP99Ms.toFixed(1)} ms`,
      [idle, known, loaded].map(({ residentBytes }) => megabytes(residentBytes)).join(', '),
      String(of.failed),
    ];
  });
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

function judge(figures: Figures): readonly Verdict[] {
  const { kept, keptP99Ms } = summary(figures);
  return [
    {
      subject: 'answers per CPU second, cached reviews',
      bound: '≥ 5000',
      figure: kept.toFixed(0),
      isMet: kept >= 5000,
    },
    bounded(`p99 at ${RATE_PER_SECOND}/s`, '≤ 20 ms', keptP99Ms, 20, (ms) => `${ms.toFixed(1)} ms`),
    bounded(
      `resident memory, ${CALLERS} callers known`,
      '≤ 120 MB',
      Math.max(figures.known.residentBytes, figures.loaded.residentBytes),
      120 * MEGABYTE,
      (bytes) => `${megabytes(bytes)} MB`,
    ),
  ];
}

/** A run that is narrowed or shortened overwrites nothing that readers see. */
async function publish(result: Result): Promise<void> {
  const isWhole = values.only === undefined && seconds >= 5 && repetitions >= 3;
  const directory = isWhole ? join(import.meta.dirname, '../results') : join(CACHE, 'results');
  const file = join(directory, `${runName(new Date(result.startedAt), result.machine)}-broker.json`);
  await mkdir(directory, { recursive: true });
  await writeFile(file, `${JSON.stringify(result, null, 1)}\n`);
  print(relative(join(import.meta.dirname, '../..'), file));
}

function wholeNumber(flag: string, text: string): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= 1 && value <= 60)) {
    throw new Error(`--${flag} is ${JSON.stringify(text)}; it must be a whole number from 1 to 60`);
  }
  return value;
}
