import { execFileSync } from 'node:child_process';
import { cpus, hostname, loadavg, release, totalmem, type } from 'node:os';
import { findProgram } from './programs.ts';
import type { ProxyKind } from './proxies/proxy.ts';

export interface Machine {
  readonly host: string;
  readonly cpu: string;
  readonly cores: number;
  readonly memoryBytes: number;
  readonly kernel: string;
  readonly node: string;
  /** Processes that ran or waited to, averaged over the minute before: what else went on. */
  readonly loadAverageBefore: number;
  /** Of the project; with `+` if the checkout has changes. */
  readonly revision: string;
  /** Of every proxy, and of what loads them. */
  readonly versions: Readonly<Record<string, string>>;
}

export async function describeMachine(kinds: readonly ProxyKind[]): Promise<Machine> {
  const versions: Record<string, string> = {};
  for (const kind of kinds) versions[kind.name] = (await kind.version()) ?? 'not found';
  for (const load of ['wrk', 'h2load'] as const) {
    versions[load] = (await findProgram(load))?.version ?? 'not found';
  }
  return {
    host: hostname(),
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memoryBytes: totalmem(),
    kernel: `${type()} ${release()}`,
    node: process.versions.node,
    loadAverageBefore: loadavg()[0] ?? 0,
    revision: revision(),
    versions,
  };
}

/** `2026-11-30-intel-xeon-2-cores`: names the files of a run. */
export function runName(startedAt: Date, { cpu, cores }: Machine): string {
  const processor = cpu
    .toLowerCase()
    .replaceAll(/\((r|tm)\)|\bcpu\b|\bprocessor\b|@.*/g, '')
    .match(/[a-z0-9]+/g)
    ?.join('-');
  return `${startedAt.toISOString().slice(0, 10)}-${processor ?? 'unknown'}-${cores}-cores`;
}

function revision(): string {
  try {
    return execFileSync('git', ['describe', '--always', '--dirty=+'], {
      cwd: import.meta.dirname,
      encoding: 'utf8',
      stdio: 'pipe',
    }).trim();
  } catch {
    // Not a checkout, such as an unpacked archive.
    return 'unknown';
  }
}
