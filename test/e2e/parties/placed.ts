/**
 * Who has which processor, so that what is measured is what a program makes of an attack: the program has one to itself,
 * as in a pod, and the others share the rest, where attackers get what the caller that is measured, and the upstream, leave.
 */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, onTestFinished } from 'vitest';
import { SURROUNDINGS } from '../../support/run-command.ts';

export type Party = 'program' | 'bystander' | 'attacker';

/** With every cell of every row, and then some. */
const LONGEST_FILE_MS = 30 * 60_000;

/** As the kernel lists them: `0-1,4`. */
const PROCESSORS = (
  /^Cpus_allowed_list:\s+(\S+)$/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1] ?? '0'
)
  .split(',')
  .flatMap((range) => {
    const [first = 0, last = first] = range.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  });

const mayComeFirst = spawnSync('chrt', ['--rr', '1', 'true']).status === 0;

/** Before whatever else runs on the machine, where that is allowed; attackers after the others. */
function turnOf(party: Party): readonly string[] {
  return mayComeFirst ? ['chrt', '--rr', party === 'attacker' ? '1' : '2'] : [];
}

/** A command that runs the one it is given in a party's place. */
export function placeOf(party: Party): readonly string[] {
  const [own = 0, ...rest] = PROCESSORS;
  const processors = party === 'program' || rest.length === 0 ? [own] : rest;
  return ['taskset', '--cpu-list', processors.join(), ...turnOf(party)];
}

/** The tests of a file begin when no other file's measure on this machine, and none do until they are over. */
export function measuredAlone(): void {
  let holder: Server | undefined;
  beforeAll(async () => {
    while (holder === undefined) {
      const asking = createServer();
      const isHeld = new Promise<boolean>((resolve) => {
        asking.once('error', () => resolve(false));
        asking.listen('\0token-sidecar-parties', () => resolve(true));
      });
      if (await isHeld) holder = asking;
      else await pause(100);
    }
  }, LONGEST_FILE_MS);
  afterAll(() => void holder?.close());
}

/**
 * Measures once more, twice, where 99 of 100 answers took longer than is allowed: an attack goes on all the time, what else a
 * machine does passes. Then both have to be in time. Resolves to all that was measured, and to the one to judge: of three the
 * one in the middle.
 */
export async function measuredAgain<A extends { readonly p99Ms: number }>(
  atMostMs: number,
  measure: () => Promise<A>,
): Promise<{ readonly all: readonly A[]; readonly p99Ms: number }> {
  const all = [await measure()];
  if ((all[0] as A).p99Ms >= atMostMs) all.push(await measure(), await measure());
  const sorted = all.map(({ p99Ms }) => p99Ms).sort((one, other) => one - other);
  return { all, p99Ms: sorted[Math.floor(sorted.length / 2)] as number };
}

/** Runs a program of this folder, which may read its input, and resolves to it and its first line. It ends with the test. */
export async function runIn(
  party: Party,
  file: string,
  args: readonly string[],
  input = '',
): Promise<{ readonly child: ChildProcess; readonly line: string }> {
  const [command = '', ...rest] = placeOf(party);
  const program = new URL(file, import.meta.url).pathname;
  const child = spawn(command, [...rest, process.execPath, program, ...args], {
    env: SURROUNDINGS,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
  });
  child.stdin.on('error', () => {}).end(input);
  let line = '';
  for await (const text of child.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    line += text;
    if (line.endsWith('\n')) break;
  }
  if (!line.endsWith('\n')) throw new Error(`${file} ${args[0]} has ended before it said anything`);
  return { child, line };
}
