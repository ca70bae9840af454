/** Which versions of Node the program begins on; the package's own tests run it on real ones. */

import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';

const LAUNCHER = new URL('../../src/launcher.ts', import.meta.url).pathname;

/** Runs `version` on this Node, which calls itself another. */
function startOn(version: string) {
  return startAfter(
    `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })`,
  );
}

/** Runs `version` after some code of the test's own. */
function startAfter(code: string, ...flags: readonly string[]) {
  const args = [
    ...flags,
    '--import',
    `data:text/javascript,${encodeURIComponent(code)}`,
    LAUNCHER,
    '--version',
  ];
  return spawnSync(process.execPath, args, { encoding: 'utf8' });
}

it.each(['22.14.9', '23.0.0', '23.9.0'])('Node %s is refused in a sentence', (version) => {
  const { status, stdout, stderr } = startOn(version);

  expect([status, stdout, stderr]).toEqual([
    78,
    '',
    `token-sidecar: Node 22.15, 23.10 or later is needed, and this is ${version}: see https://nodejs.org\n`,
  ]);
});

it.each(['22.15.0', '23.10.0', '24.0.0'])('Node %s runs it', (version) => {
  expect(startOn(version)).toMatchObject({ status: 0, stderr: '' });
});

it('opens no debugger on a SIGUSR1 that comes while the program is loaded', () => {
  const signalledWhileLoading = `
    import { registerHooks } from 'node:module';
    registerHooks({
      resolve(specifier, context, next) {
        if (specifier === './main.ts') {
          process.kill(process.pid, 'SIGUSR1');
          // The debugger is opened by a thread of its own.
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
        }
        return next(specifier, context);
      },
    });`;

  expect(startAfter(signalledWhileLoading, '--inspect-port=0')).toMatchObject({ status: 0, stderr: '' });
});

it.each([
  ['src/launcher.ts', undefined, 32],
  ['src/main.ts', undefined, 32],
  ['src/launcher.ts', '8', 8],
])('%s with UV_THREADPOOL_SIZE %s has %i threads for lookups, files and keys', (program, size, threads) => {
  const countedAtTheEnd = `
    import { readdirSync, readFileSync, stat } from 'node:fs';
    process.on('exit', () => {
      // Starts them, if nothing has.
      stat('/', () => {});
      const tasks = readdirSync('/proc/self/task');
      const names = tasks.map((task) => readFileSync('/proc/self/task/' + task + '/comm', 'utf8').trim());
      process.stderr.write(String(names.filter((name) => name === 'libuv-worker').length));
    });`;
  const { UV_THREADPOOL_SIZE: _, ...env } = process.env;
  const { status, stderr } = spawnSync(
    process.execPath,
    [
      '--import',
      `data:text/javascript,${encodeURIComponent(countedAtTheEnd)}`,
      new URL(`../../${program}`, import.meta.url).pathname,
      '--version',
    ],
    { encoding: 'utf8', env: { ...env, ...(size === undefined ? {} : { UV_THREADPOOL_SIZE: size }) } },
  );
  expect([status, stderr]).toEqual([0, String(threads)]);
});
