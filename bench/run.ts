/** What every program of the benchmark needs around it: the build, a directory, an upstream, tokens, an end. */

import { execFile, execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { shareOutCores } from './cores.ts';
import type { Dependencies } from './proxies/running-proxy.ts';
import { startTokenEndpoint } from './token-endpoint.ts';
import { startUpstream } from './upstream.ts';

const BUILD = join(import.meta.dirname, '../scripts/build.ts');

export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** On an interrupt the process ends, and by pinned-process.ts with it every child. */
export function endOnInterrupt(): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => process.exit(130));
  }
}

export async function buildSidecar(): Promise<void> {
  await promisify(execFile)(process.execPath, [BUILD]);
}

/** Starts what all proxies share, and takes it down again whatever `work` does. */
export async function withSurroundings<T>(work: (surroundings: Dependencies) => Promise<T>): Promise<T> {
  const cores = shareOutCores();
  // This process's own work is not to disturb what is measured.
  execFileSync('taskset', ['-a', '-c', '-p', cores.load, String(process.pid)]);
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-bench-'));
  const removeDirectory = (): void => rmSync(directory, { recursive: true, force: true });
  process.once('exit', removeDirectory);
  const closers: (() => Promise<unknown>)[] = [];
  try {
    const tokenEndpoint = await startTokenEndpoint();
    closers.push(() => tokenEndpoint.close());
    const upstream = await startUpstream(directory, cores);
    closers.push(() => upstream.close());
    return await work({ directory, cores, upstream, tokenEndpoint });
  } finally {
    for (const close of closers.toReversed()) await close();
  }
}
