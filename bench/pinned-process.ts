/** Processes of the benchmark: pinned to cores, bounded in time, and none outlives it. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { PROGRAM_ENVIRONMENT } from './programs.ts';

const STOP_BOUND_MS = 3000;
const OUTPUT_KEPT = 4000;

export interface ProcessOptions {
  readonly command: string;
  readonly args: readonly string[];
  /** In taskset's notation. */
  readonly cores: string;
  readonly env?: Readonly<Record<string, string>>;
}

export interface PinnedProcess {
  readonly pid: number;
  readonly stdout: Readable;
  /** The end of what it wrote to standard error, for messages. */
  readonly errorOutput: () => string;
  readonly exited: Promise<number | null>;
  /** SIGTERM; SIGKILL if that has not ended it within 3 s. */
  stop(): Promise<void>;
}

const running = new Set<ChildProcess>();

/**
 * Whatever ends this process ends its children too, and theirs: each child leads a group of its own, which also keeps
 * the terminal's interrupt from it.
 */
process.once('exit', () => {
  for (const child of running) killGroup(child);
});

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    // It has ended by itself in the meantime.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

export function startPinned({ command, args, cores, env = {} }: ProcessOptions): PinnedProcess {
  // taskset replaces itself by the command, so that the pid is the command's own.
  const child = spawn('taskset', ['-c', cores, command, ...args], {
    env: { ...PROGRAM_ENVIRONMENT, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  running.add(child);
  let errorOutput = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errorOutput = (errorOutput + text).slice(-OUTPUT_KEPT);
  });
  child.once('error', (error) => {
    errorOutput += error.message;
  });
  const exited = once(child, 'close').then(
    ([code]) => {
      running.delete(child);
      return code as number | null;
    },
    () => {
      running.delete(child);
      return null;
    },
  );
  return {
    pid: child.pid ?? Number.NaN,
    stdout: child.stdout,
    errorOutput: () => errorOutput.trim(),
    exited,
    async stop() {
      // nginx's worker goes with its master, which gets the signal.
      child.kill('SIGTERM');
      const bound = setTimeout(() => killGroup(child), STOP_BOUND_MS);
      await exited;
      clearTimeout(bound);
    },
  };
}

/**
 * Runs a command to its end.
 * @returns what it wrote to standard output.
 * @throws {Error} with what it wrote to standard error, when it fails or outlives the bound.
 */
export async function runPinned(options: ProcessOptions, boundMs: number): Promise<string> {
  const child = startPinned(options);
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  let isLate = false;
  const bound = setTimeout(() => {
    isLate = true;
    void child.stop();
  }, boundMs);
  const code = await child.exited;
  clearTimeout(bound);
  if (isLate) throw new Error(`${options.command} took more than ${boundMs} ms`);
  if (code !== 0) throw new Error(`${options.command} failed: ${child.errorOutput()}`);
  return output;
}
