/** Programs that suites call on, from Debian's packages. */

import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** A program, by its name or its path, and the package that has it. */
export type DebianProgram = readonly [program: string, packageName: string];

export function isInstalled(program: string): boolean {
  const directories = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/sbin'];
  return program.startsWith('/')
    ? existsSync(program)
    : directories.some((directory) => existsSync(join(directory, program)));
}

/** Installs those that are missing, as root; on a system without apt-get it does nothing, and the tests that need them fail. */
export function installDebianPrograms(programs: readonly DebianProgram[]): void {
  const missing = programs.filter(([program]) => !isInstalled(program)).map(([, name]) => name);
  if (missing.length === 0 || !isInstalled('apt-get')) return;
  process.stdout.write(`installing ${missing.join(', ')}\n`);
  const aptGet = (...args: string[]): void => {
    execFileSync('apt-get', ['-qq', ...args], {
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
  };
  aptGet('update');
  aptGet('install', '--yes', '--no-install-recommends', ...missing);
}
