/** Installs what the fuzzers of HTTP/2 compare with into .cache/fuzz: PyPI's h2 and hpack, and a program of Go's x/net. */

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { installOnce } from '../../../support/installed-once.ts';

const run = promisify(execFile);

const CACHE = join(import.meta.dirname, '../../../../.cache/fuzz');
const GO_SOURCES = join(import.meta.dirname, 'go');
const PYTHON_PINS = ['h2==4.4.1', 'hpack==4.2.0', 'hyperframe==6.1.0'];

export const PYTHON_PACKAGES = join(CACHE, 'python');
export const GO_PROGRAM = join(CACHE, 'go-net');

/** @throws {Error} when one of them cannot be had. */
export async function installLibraries(): Promise<void> {
  const outcomes = await Promise.all([
    installOnce({
      name: "fuzz, PyPI's h2 and hpack",
      made: PYTHON_PACKAGES,
      pinned: PYTHON_PINS,
      install: () => run('python3', ['-m', 'pip', 'install', '--target', PYTHON_PACKAGES, ...PYTHON_PINS]),
    }),
    installOnce({
      name: "fuzz, Go's x/net",
      made: GO_PROGRAM,
      sources: { directory: GO_SOURCES, files: '*' },
      install: () =>
        run('go', ['build', '-ldflags', '-s -w', '-o', GO_PROGRAM, '.'], {
          cwd: GO_SOURCES,
          env: { ...process.env, CGO_ENABLED: '0' },
        }),
    }),
  ]);
  if (outcomes.includes('failed')) throw new Error('What the fuzzers compare with is not there');
}
