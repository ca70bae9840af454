/**
 * Unpacks Debian's Redis into .cache/redis. Not of a version of ours: apt checks what it gets, and of security updates the mirrors
 * keep the last alone. Prints how long it took.
 */

import { execFile } from 'node:child_process';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { installOnce } from '../../support/installed-once.ts';
import { PACKAGES, REDIS } from './redis.ts';

const run = promisify(execFile);

/** Unpacked, not installed: it needs no rights, and leaves the machine as it was. */
async function install(): Promise<void> {
  await mkdir(REDIS);
  await run('apt-get', ['-qq', 'download', ...PACKAGES], { cwd: REDIS });
  for (const name of await readdir(REDIS)) {
    await run('dpkg-deb', ['--extract', join(REDIS, name), REDIS]);
    await rm(join(REDIS, name));
  }
}

const outcome = await installOnce({ name: 'token cache, redis', made: REDIS, pinned: PACKAGES, install });
if (outcome === 'failed') process.exitCode = 1;
