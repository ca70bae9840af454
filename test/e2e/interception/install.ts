/**
 * Installs what the clients of the interception tests are made of into .cache/interception, once for each state of what pins it, and
 * prints how long it took. What cannot be had is said and left out: the tests that need it then fail.
 */

import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { installDebianPrograms } from '../../../scripts/debian-programs.ts';
import { installOnce } from '../../support/installed-once.ts';
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

function install({ directory, made, command, env = {} }: Part) {
  const [program, ...args] = command;
  return installOnce({
    name: `interception, by ${program}`,
    made,
    sources: { directory, files: '**/*.*' },
    install: () => run(program, args, { cwd: directory, env: { ...process.env, ...env } }),
    stamp: join(CACHE, `${program}.installed`),
  });
}

// The redirection is tried beside what both kinds have made.
if (process.getuid?.() === 0) {
  installDebianPrograms([
    ['ip', 'iproute2'],
    ['iptables-legacy', 'iptables'],
  ]);
}
await mkdir(CACHE, { recursive: true });
await Promise.all(PARTS.map(install));
