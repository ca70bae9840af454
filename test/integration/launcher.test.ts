/** Which versions of Node the program begins on; the package's own tests run it on real ones. */

import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';

const LAUNCHER = new URL('../../src/launcher.ts', import.meta.url).pathname;

/** Runs `version` on this Node, which calls itself another. */
function startOn(version: string) {
  const pretend = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })`;
  const args = ['--import', `data:text/javascript,${encodeURIComponent(pretend)}`, LAUNCHER, '--version'];
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
