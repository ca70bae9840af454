/** Installs the one client that is on no machine by itself, Python's requests, into .cache/python. */

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { installOnce } from '../../support/installed-once.ts';

const PACKAGES = join(import.meta.dirname, '../../../.cache/python');
const PINNED = ['requests==2.34.2'];

const outcome = await installOnce({
  name: "forward proxy, Python's requests",
  made: PACKAGES,
  pinned: PINNED,
  install: () =>
    promisify(execFile)('python3', ['-m', 'pip', 'install', '--quiet', '--target', PACKAGES, ...PINNED]),
});
if (outcome === 'failed') process.exitCode = 1;
