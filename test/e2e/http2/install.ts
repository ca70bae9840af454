/**
 * Installs the stories of http2jp/hpack-test-case into .cache/hpack-test-case, from the source package of Debian 12's
 * haskell-http2, which has 350 of them. apt-get is given lists of its own, and checks Debian's signature.
 */

import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { installOnce } from '../../support/installed-once.ts';
import { STORIES } from './stories.ts';

const run = promisify(execFile);

const PACKAGE = 'haskell-http2';
const VERSION = '3.0.3-1';
const SOURCE =
  'deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main\n';

async function installStories(): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'hpack-test-case-'));
  try {
    await writeFile(join(directory, 'sources.list'), SOURCE);
    await mkdir(join(directory, 'lists/partial'), { recursive: true });
    const options = [
      `Dir::Etc::sourcelist=${directory}/sources.list`,
      'Dir::Etc::sourceparts=-',
      `Dir::State::lists=${directory}/lists`,
      `Dir::Cache=${directory}`,
      // Of this directory, which others may not enter.
      'APT::Sandbox::User=root',
    ].flatMap((option) => ['-o', option]);
    const aptGet = (...args: string[]) => run('apt-get', [...options, '-qq', ...args], { cwd: directory });
    await aptGet('update');
    await aptGet('source', '--download-only', `${PACKAGE}=${VERSION}`);
    await mkdir(STORIES, { recursive: true });
    const archive = `${PACKAGE}_${VERSION.split('-')[0]}.orig.tar.gz`;
    const inside = '*/test-hpack/hpack-test-case/*';
    await run('tar', ['-xzf', archive, '-C', STORIES, '--strip-components=3', '--wildcards', inside], {
      cwd: directory,
    });
  } finally {
    await rm(directory, { recursive: true });
  }
}

await installOnce({
  name: 'hpack-test-case',
  made: STORIES,
  pinned: [PACKAGE, VERSION],
  install: installStories,
});
