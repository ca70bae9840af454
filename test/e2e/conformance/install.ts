/**
 * Compiles the suites that others wrote into .cache/conformance, once for each state of go.mod, and prints how long it took. What
 * cannot be had is said and left out: the tests that need it then fail.
 */

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { installOnce } from '../../support/installed-once.ts';
import { CACHE, GO_PROGRAMS } from './programs.ts';

await installOnce({
  name: "others' suites",
  made: GO_PROGRAMS,
  sources: { directory: import.meta.dirname, files: 'go.{mod,sum}' },
  install: () =>
    promisify(execFile)('go', ['build', '-ldflags', '-s -w', '-o', `${GO_PROGRAMS}/`, 'tool'], {
      cwd: import.meta.dirname,
      env: { ...process.env, CGO_ENABLED: '0' },
    }),
  stamp: join(CACHE, 'go.installed'),
});
