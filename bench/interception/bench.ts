/**
 * What it costs to end an app's TLS and begin another: CPU of the proxy per request on connections that stay, and per new
 * connection; memory with 256 connections; and how soon it listens. Beside HAProxy with a fixed certificate, and mitmproxy.
 *
 *     npm run bench:interception -- [SECONDS]
 *
 * Prints a table and what the sidecar is to reach. With ten seconds or more for each cost, and every proxy there, the figures
 * are written to bench/results/.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { describeMachine, type Machine, runName } from '../machine.ts';
import { cpuSeconds, memoryOf } from '../process-figures.ts';
import { CACHE } from '../programs.ts';
import { haproxy } from '../proxies/haproxy.ts';
import { buildSidecar, print } from '../run.ts';
import { machineText, verdictTable } from '../table.ts';
import { bounded, MEGABYTE, megabytes, type Verdict } from '../targets.ts';
import { CONTESTANTS, type Contestant, type Running, SIDECAR } from './contestants.ts';
import { churn, hold, keepAsking } from './load.ts';
import { startSurroundings } from './surroundings.ts';

const SECONDS = Number(process.argv[2] ?? 10);
const WARM_UP_SECONDS = Math.min(3, SECONDS);
const CONNECTIONS = 32;
const MANY = 256;
const STARTS = 5;
const WHOLE_SECONDS = 10;

const MANY_BYTES = 60 * MEGABYTE;
const LISTENING_MS = 250;

interface Figures {
  readonly name: string;
  readonly idleBytes: number;
  /** Median from its start. */
  readonly listeningMs: number;
  /** Absent of what is only started. */
  readonly underLoad?: {
    readonly requestUs: number;
    readonly connectionUs: number;
    readonly manyBytes: number;
  };
}

/** CPU of the proxy for each of what `load` counts, in µs. */
async function cost(pid: number, load: (seconds: number) => Promise<number>): Promise<number> {
  await load(WARM_UP_SECONDS);
  const before = cpuSeconds(pid);
  const count = await load(SECONDS);
  return ((cpuSeconds(pid) - before) * 1e6) / count;
}

const ownBytes = (pid: number): number => memoryOf(pid).anonymousBytes;

async function measure(contestant: Contestant, start: () => Promise<Running>): Promise<Figures> {
  const times: number[] = [];
  for (let run = 0; run < STARTS; run++) {
    const { listeningMs, stop } = await start();
    times.push(listeningMs);
    await stop();
  }
  const running = await start();
  const { target, pid } = running;
  const listeningMs = times.sort((a, b) => a - b)[Math.floor(STARTS / 2)] as number;
  try {
    const idle = { name: contestant.name, idleBytes: ownBytes(pid), listeningMs };
    if (contestant.startsOnly) return idle;
    const requestUs = await cost(pid, (seconds) => keepAsking(target, CONNECTIONS, seconds));
    const connectionUs = await cost(pid, (seconds) => churn(target, CONNECTIONS, seconds));
    const manyBytes = await hold(target, MANY, () => ownBytes(pid));
    return { ...idle, underLoad: { requestUs, connectionUs, manyBytes } };
  } finally {
    await running.stop();
  }
}

interface InterceptionResult {
  readonly startedAt: string;
  readonly machine: Machine;
  readonly secondsPerCost: number;
  readonly proxies: readonly Figures[];
}

await buildSidecar();
const startedAt = new Date();
const machine = await describeMachine([haproxy]);
print(machineText(machine));
const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-interception-bench-'));
const surroundings = await startSurroundings(directory);
const rows: Figures[] = [];
try {
  for (const contestant of CONTESTANTS) {
    const missing = await contestant.missing();
    if (missing !== undefined) {
      process.stderr.write(`${contestant.name} is left out: ${missing}\n`);
      continue;
    }
    rows.push(
      await measure(contestant, async () => {
        const launch = await contestant.prepare(surroundings);
        const beganAtMs = performance.now();
        const child = spawn(launch.command, launch.args, {
          env: launch.env,
          stdio: ['ignore', 'pipe', 'inherit'],
        });
        child.stdout.resume();
        const target = await launch.listening(child);
        return {
          pid: child.pid as number,
          target,
          listeningMs: performance.now() - beganAtMs,
          async stop() {
            child.kill('SIGTERM');
            await once(child, 'exit');
          },
        };
      }),
    );
  }
} finally {
  surroundings.close();
  await rm(directory, { recursive: true, force: true });
}
print(figuresTable(rows));
print(verdictTable(judge(rows)));
await publish({ startedAt: startedAt.toISOString(), machine, secondsPerCost: SECONDS, proxies: rows });

function figuresTable(figures: readonly Figures[]): string {
  const headings = ['µs/request', 'µs/connection', 'idle MB', `MB at ${MANY}`, 'ms to listen'];
  const line = (name: string, cells: readonly string[]): string =>
    `${name.padEnd(30)}${cells.map((cell) => cell.padStart(15)).join('')}`;
  const shown = (value: number | undefined, digits: number): string => value?.toFixed(digits) ?? '';
  const inMegabytes = (bytes: number | undefined): string => (bytes === undefined ? '' : megabytes(bytes));
  return [
    line('proxy', headings),
    ...figures.map(({ name, idleBytes, listeningMs, underLoad }) =>
      line(name, [
        shown(underLoad?.requestUs, 1),
        shown(underLoad?.connectionUs, 0),
        inMegabytes(idleBytes),
        inMegabytes(underLoad?.manyBytes),
        shown(listeningMs, 0),
      ]),
    ),
  ].join('\n');
}

function judge(figures: readonly Figures[]): readonly Verdict[] {
  const own = figures.find(({ name }) => name === SIDECAR);
  return [
    bounded(
      `own memory, ${MANY} intercepted connections`,
      '≤ 60 MB',
      own?.underLoad?.manyBytes,
      MANY_BYTES,
      (bytes) => `${megabytes(bytes)} MB`,
    ),
    bounded(
      'start to listening, its keys included',
      '≤ 250 ms',
      own?.listeningMs,
      LISTENING_MS,
      (ms) => `${ms.toFixed(0)} ms`,
    ),
  ];
}

/** A run that was shortened, or that a proxy was missing from, overwrites nothing that readers see. */
async function publish(result: InterceptionResult): Promise<void> {
  const isWhole = SECONDS >= WHOLE_SECONDS && result.proxies.length === CONTESTANTS.length;
  const results = isWhole ? join(import.meta.dirname, '../results') : join(CACHE, 'results');
  const file = join(results, `${runName(startedAt, result.machine)}-interception.json`);
  await mkdir(results, { recursive: true });
  await writeFile(file, `${JSON.stringify(result)}\n`);
  print(relative(join(import.meta.dirname, '../..'), file));
}
