import { rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/platform/time/clock.ts';
import { type ConfigWatchOptions, watchConfigFile } from '../../../src/sidecar/reload/config-watch.ts';
import { mountSecret } from '../../support/kubelet-secret.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const STILL_MS = 250;

const HOUR_MS = 3_600_000;
const FILE = 'token-sidecar.yaml';

/** Follows a ConfigMap's file that says `one`, and keeps what it is told of. */
async function follow(options: Partial<ConfigWatchOptions> = {}) {
  const volume = await mountSecret({ [FILE]: 'one' });
  const path = join(volume.directory, FILE);
  const told: (string | undefined)[] = [];
  let wake = (): void => {};
  const end = watchConfigFile(path, {
    clock: systemClock,
    pollMs: HOUR_MS,
    read: 'one',
    onChange: (text) => {
      told.push(text);
      wake();
    },
    ...options,
  });
  onTestFinished(end);
  return {
    path,
    told,
    end,
    swap: (text: string) => volume.update({ [FILE]: text }),
    /** Resolves when it has been told of so many changes. */
    async changes(count: number): Promise<void> {
      while (told.length < count) await new Promise<void>((resolve) => (wake = resolve));
    },
  };
}

it('tells of what the kubelet swaps in, again and again', async () => {
  const { told, swap, changes } = await follow();
  await swap('two');
  await changes(1);
  await swap('three');
  await changes(2);
  expect(told).toEqual(['two', 'three']);
});

it('tells of what changed between the reading and the watch', async () => {
  const { told, changes } = await follow({ read: 'before' });
  await changes(1);
  expect(told).toEqual(['one']);
});

it('tells of a file that an editor renames into its place, and of one that is gone', async () => {
  const { path, told, changes } = await follow();
  await writeFile(`${path}.new`, 'edited');
  await rename(`${path}.new`, path);
  await changes(1);
  await rm(path);
  await changes(2);
  expect(told).toEqual(['edited', undefined]);
});

it('sees by looking what the system gives no watch for', async () => {
  const modes: string[] = [];
  const { told, swap, changes } = await follow({
    pollMs: 20,
    onMode: ({ by }) => modes.push(by),
    watch: () => {
      throw Object.assign(new Error('no space for watches'), { code: 'ENOSPC' });
    },
  });
  await swap('two');
  await changes(1);
  expect(told).toEqual(['two']);
  expect(modes).toEqual(['polling']);
});

/** One whose clock stands still, and that looks when it is told to. */
async function lookByHand() {
  const clock = new ManualClock();
  const looks: (() => void)[] = [];
  const followed = await follow({
    clock,
    // Every notification leads to one look, a moment later.
    watch: ((_path: string, _options: object, listener: () => void) => {
      looks.push(listener);
      return { on: () => {}, close: () => {} };
    }) as never,
  });
  return { ...followed, clock, notify: () => looks.at(-1)?.() };
}

it('takes a text for whole only when it has stood still', async () => {
  const { path, told, clock, notify } = await lookByHand();
  await clock.advance(0);
  await writeFile(path, 'tw');
  notify();
  await clock.advance(STILL_MS - 50);
  await writeFile(path, 'two, whole');
  notify();
  await clock.advance(STILL_MS - 50);
  // As long as from the first piece, and another notification that changes nothing.
  notify();
  await clock.advance(40);
  expect(told).toEqual([]);
  await clock.advance(100);
  expect(told).toEqual(['two, whole']);
});

it('tells nothing of what comes and goes', async () => {
  const { path, told, clock, notify } = await lookByHand();
  await clock.advance(0);
  await writeFile(path, '');
  notify();
  await clock.advance(STILL_MS - 50);
  await writeFile(path, 'one');
  notify();
  await clock.advance(10 * STILL_MS);
  expect(told).toEqual([]);
});

it('sees another text of the same length and with the same time, as of a file that is restored', async () => {
  const { path, told, clock, notify } = await lookByHand();
  await clock.advance(0);
  const { mtime } = await stat(path);
  await writeFile(path, 'two');
  await utimes(path, mtime, mtime);
  notify();
  await clock.advance(2 * STILL_MS);
  expect(told).toEqual(['two']);
});

it('leaves no timer behind', async () => {
  const { path, clock, notify, end, told } = await lookByHand();
  await clock.advance(0);
  await writeFile(path, 'two');
  notify();
  await clock.advance(50);
  end();
  await clock.advance(HOUR_MS);
  expect([clock.pendingTimers, told]).toEqual([0, []]);
});
