/** Installs the one client that is on no machine by itself, Python's requests, into .cache/python. */

import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

const PACKAGES = join(import.meta.dirname, '../../../.cache/python');
const PINNED = ['requests==2.34.2'];

if (!existsSync(join(PACKAGES, 'requests'))) {
  execFileSync('python3', ['-m', 'pip', 'install', '--quiet', '--target', PACKAGES, ...PINNED], {
    stdio: 'inherit',
  });
}
