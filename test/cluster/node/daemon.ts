import { spawn } from 'node:child_process';
import { closeSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { FIRST_NODE, type Node } from './nodes.ts';
import { LOGS, PIDS } from './places.ts';

/** The command that runs another one in a node's network namespace. */
export function inNetworkOf({ networkNamespace }: Node): readonly [string, ...string[]] {
  return ['nsenter', `--net=/run/netns/${networkNamespace}`, '--'];
}

/** That of the first node. */
export const IN_NAMESPACE = inNetworkOf(FIRST_NODE);

/** Starts a program on the first node. */
export function startDaemon(name: string, program: string, ...args: readonly string[]): void {
  startDaemonOn(FIRST_NODE, name, program, ...args);
}

/** Starts a program on a node, with its log and its process id in files. */
export function startDaemonOn(node: Node, name: string, program: string, ...args: readonly string[]): void {
  const log = openSync(join(LOGS, `${name}.log`), 'a');
  const [enter, ...entered] = inNetworkOf(node);
  const child = spawn(enter, [...entered, program, ...args], {
    detached: true,
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  child.unref();
  writeFileSync(join(PIDS, name), String(child.pid));
}

/** Ends a program that `startDaemon` started here or in a process before; of one that runs no more nothing is said. */
export async function stopDaemon(name: string): Promise<void> {
  const pid = daemonPid(name);
  if (pid === undefined) return;
  signal(pid, 'SIGTERM');
  for (let tries = 0; tries < 100 && isAlive(pid); tries += 1) await pause(100);
  signal(pid, 'SIGKILL');
  rmSync(join(PIDS, name), { force: true });
}

export function daemons(): string[] {
  try {
    return readdirSync(PIDS);
  } catch {
    return [];
  }
}

export function deadDaemons(): string[] {
  return daemons().filter((name) => {
    const pid = daemonPid(name);
    return pid === undefined || !isAlive(pid);
  });
}

/** The end of what a daemon has written. */
export function logOf(name: string, bytes = 3000): string {
  return readFileSync(join(LOGS, `${name}.log`), 'utf8').slice(-bytes);
}

function daemonPid(name: string): number | undefined {
  try {
    return Number(readFileSync(join(PIDS, name), 'utf8'));
  } catch {
    return undefined;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A child of ours that has ended and was not waited for still has its number.
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
