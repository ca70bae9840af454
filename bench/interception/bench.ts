/**
 * What it costs to end an app's TLS and begin another: CPU of the proxy per request on connections that stay, and per new
 * connection; memory with 256 connections; and how soon it listens. Beside HAProxy with a fixed certificate, and mitmproxy.
 * Run `npm run build` first; `node bench/interception/bench.ts [SECONDS]` prints a table.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cpuSeconds, memoryOf } from '../process-figures.ts';
import { CONTESTANTS, type Contestant, type Running } from './contestants.ts';
import { churn, hold, keepAsking } from './load.ts';
import { startSurroundings } from './surroundings.ts';

const SECONDS = Number(process.argv[2] ?? 10);
const WARM_UP_SECONDS = Math.min(3, SECONDS);
const CONNECTIONS = 32;
const MANY = 256;
const STARTS = 5;

interface Figures {
  readonly name: string;
  readonly idleMb: number;
  /** Median from its start. */
  readonly listeningMs: number;
  /** Absent of what is only started. */
  readonly underLoad?: { readonly requestUs: number; readonly connectionUs: number; readonly manyMb: number };
}

/** CPU of the proxy for each of what `load` counts, in µs. */
async function cost(pid: number, load: (seconds: number) => Promise<number>): Promise<number> {
  await load(WARM_UP_SECONDS);
  const before = cpuSeconds(pid);
  const count = await load(SECONDS);
  return ((cpuSeconds(pid) - before) * 1e6) / count;
}

const megabytes = (pid: number): number => memoryOf(pid).anonymousBytes / 1024 / 1024;

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
    const idle = { name: contestant.name, idleMb: megabytes(pid), listeningMs };
    if (contestant.startsOnly) return idle;
    const requestUs = await cost(pid, (seconds) => keepAsking(target, CONNECTIONS, seconds));
    const connectionUs = await cost(pid, (seconds) => churn(target, CONNECTIONS, seconds));
    const manyMb = await hold(target, MANY, () => megabytes(pid));
    return { ...idle, underLoad: { requestUs, connectionUs, manyMb } };
  } finally {
    await running.stop();
  }
}

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
const HEADINGS = ['µs/request', 'µs/connection', 'idle MB', `MB at ${MANY}`, 'ms to listen'];
const line = (name: string, cells: readonly string[]): string =>
  `${name.padEnd(30)}${cells.map((cell) => cell.padStart(15)).join('')}\n`;
const shown = (value: number | undefined, digits: number): string => value?.toFixed(digits) ?? '';
process.stdout.write(line('proxy', HEADINGS));
for (const { name, idleMb, listeningMs, underLoad } of rows) {
  const { requestUs, connectionUs, manyMb } = underLoad ?? {};
  process.stdout.write(
    line(name, [
      shown(requestUs, 1),
      shown(connectionUs, 0),
      shown(idleMb, 1),
      shown(manyMb, 1),
      shown(listeningMs, 0),
    ]),
  );
}
