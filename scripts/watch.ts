/**
 * Watches types, lint, and the tests of what has changed since the last commit, until Ctrl-C.
 *
 *     npm run watch
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { watch } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');

/** A save touches a file several times. */
const SETTLED_MS = 200;

start('tsc', '--noEmit', '--watch', '--preserveWatchOutput');
// `q` ends it, and with it the rest.
start('vitest', 'watch', '--changed').once('exit', (status) => process.exit(status ?? 1));

let timer: NodeJS.Timeout | undefined;
let linting = Promise.resolve();
for (const folder of ['src', 'test', 'scripts']) {
  watch(join(ROOT, folder), { recursive: true }, () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      linting = linting.then(lint);
    }, SETTLED_MS);
  });
}

async function lint(): Promise<void> {
  await once(start('biome', 'check', '--changed', '--since=HEAD', '--no-errors-on-unmatched'), 'exit');
}

function start(program: string, ...args: readonly string[]): ChildProcess {
  return spawn(join(ROOT, 'node_modules/.bin', program), args, { cwd: ROOT, stdio: 'inherit' });
}
