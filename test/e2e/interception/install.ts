/**
 * Installs what the clients of the interception tests are made of into .cache/interception, once for each state of what pins it, and
 * prints how long it took. What cannot be had is said and left out: the tests that need it then fail.
 */

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, globSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CACHE, CLIENTS, GO_PROGRAM, PYTHON_PACKAGES, RUST_PROGRAM, RUST_TARGET } from './programs.ts';

const run = promisify(execFile);

interface Part {
  readonly directory: string;
  /** Is there when it has been installed. */
  readonly made: string;
  readonly command: readonly [string, ...string[]];
  readonly env?: Readonly<Record<string, string>>;
}

const NODE_CLIENT = join(CLIENTS, 'node');

const PARTS: readonly Part[] = [
  {
    directory: join(CLIENTS, 'python'),
    made: PYTHON_PACKAGES,
    command: [
      'python3',
      '-m',
      'pip',
      'install',
      '--quiet',
      '--upgrade',
      '--target',
      PYTHON_PACKAGES,
      '--requirement',
      'requirements.txt',
    ],
  },
  {
    directory: NODE_CLIENT,
    made: join(NODE_CLIENT, 'node_modules'),
    command: ['npm', 'ci', '--ignore-scripts', '--no-audit', '--no-fund'],
  },
  {
    directory: join(CLIENTS, 'go'),
    made: GO_PROGRAM,
    command: ['go', 'build', '-o', GO_PROGRAM, '.'],
    env: { CGO_ENABLED: '0' },
  },
  {
    directory: join(CLIENTS, 'rust'),
    made: RUST_PROGRAM,
    command: ['cargo', 'build', '--quiet', '--locked', '--target-dir', RUST_TARGET],
  },
];

async function install({ directory, made, command, env = {} }: Part): Promise<void> {
  const [program, ...args] = command;
  const stamp = join(CACHE, `${program}.installed`);
  const digest = createHash('sha256');
  const exclude = ['**/node_modules/**'];
  for (const file of globSync('**/*.*', { cwd: directory, exclude }).sort()) {
    digest.update(await readFile(join(directory, file)));
  }
  const version = digest.digest('hex');
  if (existsSync(made) && (await readFile(stamp, 'utf8').catch(() => '')) === version) return;
  await rm(stamp, { force: true });
  const beganAtMs = performance.now();
  const outcome = await run(program, args, { cwd: directory, env: { ...process.env, ...env } }).then(
    () => 'installed',
    (error: Error) => `cannot be installed: ${error.message}`,
  );
  if (outcome === 'installed') await writeFile(stamp, version);
  const seconds = (performance.now() - beganAtMs) / 1000;
  process.stdout.write(`interception, by ${program}: ${outcome} (${seconds.toFixed(0)} s)\n`);
}

await mkdir(CACHE, { recursive: true });
await Promise.all(PARTS.map(install));
