/** The kernel itself, in a network namespace made for it. */

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const NAMESPACE = ['-rn'];
const CHILD = join(import.meta.dirname, 'lone-batch.ts');

/** Node 24 cannot call C. */
const isPossible =
  process.allowedNodeEnvironmentFlags.has('--experimental-ffi') &&
  spawnSync('unshare', [...NAMESPACE, 'true']).status === 0;

function told(change: string): string {
  const child = spawnSync('unshare', [...NAMESPACE, process.execPath, '--no-warnings', CHILD, change], {
    encoding: 'utf8',
  });
  return `${child.stdout}${child.stderr}`;
}

it.runIf(isPossible)('takes as many rules as the command may ask for, in one batch', () => {
  // Three rules of each chain are always there.
  expect(told('largest')).toBe(`${2 * (3 + 64 + 64 + 64)} rules`);
});

it.runIf(isPossible)('says why it refuses the first of many messages', () => {
  expect(told('only-refused')).toContain('the kernel refuses rule 1 of the chain redirect: ENOENT:');
});
