import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { type FSWatcher, watch } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import {
  type DirectoryWatchOptions,
  type WatchMode,
  watchDirectory,
} from '../../src/credentials/directory-watch.ts';
import { ManualClock } from '../support/manual-clock.ts';

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

describe('a directory that is removed and made again', () => {
  it.each<[string, (directory: string) => Promise<unknown>]>([
    ['removed', (directory) => rm(directory, { recursive: true })],
    ['moved away', (directory) => rename(directory, `${directory}-away`)],
  ])('is seen at once, and watched, after it was %s', async (_, remove) => {
    const directory = join(await temporaryDirectory(), 'mount', 'secret');
    await mkdir(directory, { recursive: true });
    const { nextLook } = follow(directory);
    let look = nextLook();
    await remove(directory);
    await look;
    look = nextLook();
    await mkdir(directory);
    await look;
    look = nextLook();
    await write(directory);
    await look;
  });

  it('is seen at once where the directories above it were missing too', async () => {
    const root = await temporaryDirectory();
    const directory = join(root, 'run', 'secrets', 'shop');
    const { nextLook } = follow(directory);
    for (const made of [join(root, 'run'), join(root, 'run', 'secrets'), directory]) {
      const look = nextLook();
      await mkdir(made);
      await look;
    }
    const look = nextLook();
    await write(directory);
    await look;
  });

  it('is seen at once where the directory above it was removed too, later', async () => {
    const root = await temporaryDirectory();
    const directory = join(root, 'run', 'secrets', 'shop');
    await mkdir(directory, { recursive: true });
    const { nextLook } = follow(directory);
    for (const removed of [directory, join(root, 'run', 'secrets'), join(root, 'run')]) {
      const look = nextLook();
      await rm(removed, { recursive: true });
      await look;
    }
    const look = nextLook();
    await mkdir(directory, { recursive: true });
    await look;
  });

  it('is not looked for in every change beside it', async () => {
    const root = await temporaryDirectory();
    const { looks, nextLook } = follow(join(root, 'secret'));
    for (let file = 0; file < 20; file++) await write(root);
    const look = nextLook();
    await mkdir(join(root, 'secret'));
    await look;
    expect(looks()).toBe(1);
  });
});

it('a watch that died without a word is made anew by the poll', async () => {
  const root = await temporaryDirectory();
  const [one, two] = [join(root, 'one'), join(root, 'two')];
  await Promise.all([mkdir(one), mkdir(two)]);
  const mounted = join(root, 'mounted');
  await symlink(one, mounted);
  const clock = new ManualClock();
  const { looks } = follow(mounted, { clock, pollMs: 30_000 });
  // Nothing happens to the directory that is watched: it is another that is mounted now.
  await symlink(two, join(root, 'next'));
  await rename(join(root, 'next'), mounted);
  await clock.advance(30_000);
  expect(looks()).toBe(1);

  const witness = watch(two);
  onTestFinished(() => witness.close());
  const witnessed = once(witness, 'change');
  await write(two);
  await witnessed;
  // Both watches are of one queue of the kernel; the other's notification came with this one.
  await clock.advance(1000);
  expect(looks()).toBe(2);
});

describe('a system that gives no watch', () => {
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

  it('of a directory that came while its parent was being turned to says so too', async () => {
    const directory = join(await temporaryDirectory(), 'secret');
    let asked = 0;
    const scarce = ((path: string, options: object, listener: () => void): FSWatcher => {
      if (path === directory && ++asked > 1) throw Object.assign(new Error('no watch'), { code: 'EMFILE' });
      return watch(path, options, listener);
    }) as typeof watch;
    const modes: WatchMode[] = [];
    follow(directory, { watch: scarce, onMode: (mode) => modes.push(mode) });
    expect(modes).toEqual([{ by: 'polling', code: 'EMFILE' }]);
  });

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
