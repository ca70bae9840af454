import { spawnSync } from 'node:child_process';
import { type FSWatcher, statSync, watch } from 'node:fs';
import { chmod, mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  type DirectoryWatchOptions,
  type WatchMode,
  watchDirectory,
} from '../../../src/platform/mounted/directory-watch.ts';
import { systemClock } from '../../../src/platform/time/clock.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const HOUR_MS = 3_600_000;

async function temporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-watch-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

/** A watch whose poll is out of reach unless told otherwise, and a way to wait for its next look. */
function follow(directory: string, options: Partial<DirectoryWatchOptions> = {}) {
  const waiting: (() => void)[] = [];
  let looks = 0;
  const end = watchDirectory(directory, { clock: systemClock, pollMs: HOUR_MS, ...options }, () => {
    looks += 1;
    for (const wake of waiting.splice(0)) wake();
  });
  onTestFinished(end);
  return {
    looks: () => looks,
    nextLook: () => new Promise<void>((resolve) => waiting.push(resolve)),
  };
}

async function write(directory: string): Promise<void> {
  await writeFile(join(directory, 'client_secret'), String(Math.random()));
}

/** How another directory comes to be at `mount/secret` of `root`. */
const REPLACEMENTS: readonly (readonly [string, (root: string, directory: string) => Promise<unknown>])[] = [
  [
    'removed and made again',
    async (_root, directory) => {
      await rm(directory, { recursive: true });
      await mkdir(directory);
    },
  ],
  [
    'moved away and made again',
    async (_root, directory) => {
      await rename(directory, `${directory}-away`);
      await mkdir(directory);
    },
  ],
  [
    'removed and made again with the one above it',
    async (_root, directory) => {
      await rm(dirname(directory), { recursive: true });
      await mkdir(directory, { recursive: true });
    },
  ],
  [
    'replaced by moving the one above it',
    async (root, directory) => {
      await mkdir(join(root, 'next', 'secret'), { recursive: true });
      await rename(dirname(directory), join(root, 'before'));
      await rename(join(root, 'next'), dirname(directory));
    },
  ],
  [
    'replaced by a link above it',
    async (root, directory) => {
      await mkdir(join(root, 'next', 'secret'), { recursive: true });
      await rename(dirname(directory), join(root, 'before'));
      await symlink('next', dirname(directory));
    },
  ],
];

it.each(REPLACEMENTS)(
  'a directory that is %s is looked at within a second, and watched',
  async (_, replace) => {
    const root = await temporaryDirectory();
    const directory = join(root, 'mount', 'secret');
    await mkdir(directory, { recursive: true });
    const clock = new ManualClock();
    const { looks } = follow(directory, { clock });
    await replace(root, directory);
    await clock.advance(1000);
    const before = looks();
    expect(before).toBeGreaterThan(0);

    const { nextLook } = follow(directory);
    const look = nextLook();
    await write(directory);
    await look;
    // Both watches are of one queue of the kernel: the other's notification came with this one.
    await clock.advance(100);
    expect(looks()).toBeGreaterThan(before);
  },
);

it('a directory that comes late, with those above it, is looked at once, and not for what changes beside them', async () => {
  const root = await temporaryDirectory();
  const directory = join(root, 'run', 'secrets', 'shop');
  const clock = new ManualClock();
  const { looks } = follow(directory, { clock });
  for (const made of [join(root, 'run'), join(root, 'run', 'secrets')]) {
    await mkdir(made);
    await write(made);
    await clock.advance(1000);
  }
  expect(looks()).toBe(0);
  await mkdir(directory);
  await clock.advance(1000);
  expect(looks()).toBe(1);
});

it('a directory that may not be read is looked at within a second of being opened', async () => {
  const directory = join(await temporaryDirectory(), 'secret');
  await mkdir(directory, { mode: 0 });
  // As the system does it for others than root.
  const forbidding = ((path: string, options: object, listener: () => void): FSWatcher => {
    if ((statSync(path).mode & 0o400) === 0) throw Object.assign(new Error('no watch'), { code: 'EACCES' });
    return watch(path, options, listener);
  }) as typeof watch;
  const clock = new ManualClock();
  const modes: WatchMode[] = [];
  const { looks } = follow(directory, { clock, watch: forbidding, onMode: (mode) => modes.push(mode) });
  await chmod(directory, 0o700);
  await clock.advance(1000);
  expect(looks()).toBe(1);
  expect(modes).toEqual([{ by: 'polling', code: 'EACCES' }, { by: 'notification' }]);
});

describe('a system without file watches', () => {
  it.each(['EMFILE', 'ENOSPC'])(
    '(%s) is told once, polled, and taken when it gives one again',
    async (code) => {
      const directory = await temporaryDirectory();
      const clock = new ManualClock();
      const modes: WatchMode[] = [];
      let exhausted = true;
      const scarce = ((path: string, options: object, listener: () => void): FSWatcher => {
        if (exhausted) throw Object.assign(new Error('no watch'), { code });
        return watch(path, options, listener);
      }) as typeof watch;
      const { looks } = follow(directory, {
        clock,
        pollMs: 30_000,
        watch: scarce,
        onMode: (mode) => modes.push(mode),
      });
      await clock.advance(90_000);
      expect(looks()).toBe(3);
      expect(modes).toEqual([{ by: 'polling', code }]);
      exhausted = false;
      await clock.advance(30_000);
      expect(modes.slice(1)).toEqual([{ by: 'notification' }]);
    },
  );

  const limited = 'echo 0 > /proc/sys/user/max_inotify_watches && exec "$0" "$@"';
  const namespaces = spawnSync('unshare', ['-Ur', 'sh', '-c', limited, 'true']).status === 0;

  it.skipIf(!namespaces)('by its limit on watches is told with ENOSPC', async () => {
    const directory = await temporaryDirectory();
    const child = spawnSync(
      'unshare',
      ['-Ur', 'sh', '-c', limited, process.execPath, join(import.meta.dirname, 'lone-watch.ts'), directory],
      { encoding: 'utf8' },
    );
    expect(child.stdout).toBe('{"by":"polling","code":"ENOSPC"}');
  });
});
