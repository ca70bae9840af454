/** Gets mitmproxy from PyPI into .cache/bench/, once for each version. Where it can't be had it is left out with a notice. */

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CACHE } from '../programs.ts';
import { print } from '../run.ts';
import { MITMPROXY, MITMPROXY_VERSION } from './mitmproxy.ts';

const run = promisify(execFile);

async function install(): Promise<void> {
  await mkdir(CACHE, { recursive: true });
  const incoming = await mkdtemp(join(CACHE, 'incoming-'));
  try {
    const requirement = `mitmproxy==${MITMPROXY_VERSION}`;
    await run('python3', ['-m', 'pip', 'install', '--quiet', '--target', incoming, requirement]);
    await rename(incoming, MITMPROXY);
  } finally {
    await rm(incoming, { recursive: true, force: true });
  }
}

if (!existsSync(MITMPROXY)) {
  print('getting mitmproxy');
  await install().catch((error: Error) => {
    const reason = error.message.trim().split('\n').at(-1);
    print(`notice: mitmproxy could not be had and will be left out: ${reason}`);
  });
}
