/** The first command in a checkout, on an older Node than the program runs on: `npm ci` brings the right one along. */

import { execFile } from 'node:child_process';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import { binOf } from './nodes.ts';

const ROOT = join(import.meta.dirname, '../..');

it('`npm ci` on Node 20 has no warning for each package that wants a newer one', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-checkout-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  for (const file of ['package.json', 'package-lock.json', '.npmrc']) {
    await cp(join(ROOT, file), join(directory, file));
  }
  const { PATH = '', HOME = '' } = process.env;
  const old = binOf({ version: '20.20.2', isSupported: false });
  const { stderr } = await promisify(execFile)('npm', ['ci', '--dry-run'], {
    cwd: directory,
    env: { PATH: [old, PATH].join(delimiter), HOME },
  });
  expect(stderr).toBe('');
});
