/** Gets Chromium into test/browser/node_modules, unless what the lock file says is there. It is for x64 alone. */

import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const lock = join(import.meta.dirname, 'package-lock.json');
const installed = join(import.meta.dirname, 'node_modules/.installed-lock.json');

if (!existsSync(installed) || readFileSync(installed, 'utf8') !== readFileSync(lock, 'utf8')) {
  process.stdout.write('getting Chromium\n');
  execFileSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: import.meta.dirname,
    stdio: 'inherit',
  });
  copyFileSync(lock, installed);
}
