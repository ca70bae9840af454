/** The files of a brokered credential, where they cannot be written at first. */

import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { openLiveVolume } from '../../src/broker/secret-volume.ts';
import { withoutRepeatLimit } from '../../src/platform/log/logger.ts';
import { captureLog } from '../support/log-capture.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { until } from '../support/until.ts';

type ObjectValues = Readonly<Record<string, Buffer>>;

/** @param prepare what stands in the way. */
async function open(prepare: (parent: string) => Promise<void> = async () => undefined) {
  const parent = await mkdtemp(join(tmpdir(), 'token-sidecar-volume-'));
  onTestFinished(() => rm(parent, { recursive: true }));
  await prepare(parent);
  const directory = join(parent, 'volumes', 'credential');
  const [data, aside] = [join(directory, '..data'), join(directory, '..aside')];
  const clock = new ManualClock();
  const { log, lines } = captureLog();
  let listener: (values: ObjectValues) => void = () => undefined;
  const volume = openLiveVolume(
    { directory, files: [{ kind: 'secret', name: 'shop', key: 'secret', path: 'client_secret' }] },
    {
      objects: {
        watch: (_kind, _name, listens) => {
          listener = listens;
          return () => undefined;
        },
      },
      clock,
      log: withoutRepeatLimit(log),
    },
  );
  onTestFinished(() => volume.close());
  const secret = () => readFile(join(directory, 'client_secret'), 'utf8').catch(() => undefined);
  return {
    parent,
    directory,
    clock,
    lines,
    volume,
    secret,
    tell: (value: string) => listener({ secret: Buffer.from(value) }),
    isWritten: (value: string) => until(async () => (await secret()) === value),
    files: async () => (await readdir(directory)).length,
    failures: () => lines.length,
    /** A directory, which no link takes the place of. */
    async obstruct() {
      await rename(data, aside);
      await mkdir(data);
    },
    async clear() {
      await rm(data, { recursive: true });
      await rename(aside, data);
    },
  };
}

it('a change that cannot be written is tried again after a second, two and four, up to a minute', async () => {
  const { clock, lines, volume, tell, isWritten, files, failures, obstruct, clear } = await open();
  tell('old secret');
  await volume.filled;
  const before = await files();
  await obstruct();
  tell('new secret');
  await until(() => failures() === 1);
  for (const [at, seconds] of [1, 2, 4, 8, 16, 32, 60, 60].entries()) {
    await clock.advance(seconds * 1000 - 1);
    expect([failures(), clock.pendingTimers]).toEqual([at + 1, 1]);
    await clock.advance(1);
    await until(() => failures() === at + 2);
  }
  expect(await files()).toBe(before + 1);
  await clear();
  await clock.advance(60_000);
  await isWritten('new secret');
  await until(async () => (await files()) === before);
  expect(clock.pendingTimers).toBe(0);
  expect(lines.join()).toContain('files of a credential cannot be written');
  expect(lines.join()).not.toMatch(/(old|new) secret/);
});

it('a change in the meantime is written at once, in place of what waits', async () => {
  const { clock, volume, tell, isWritten, failures, obstruct, clear } = await open();
  tell('old');
  await volume.filled;
  await obstruct();
  tell('new');
  await until(() => failures() === 1);
  expect(clock.pendingTimers).toBe(1);
  await clear();
  tell('newer');
  await isWritten('newer');
  expect(clock.pendingTimers).toBe(0);
});

it('a directory that cannot be made is made later, with what is known by then', async () => {
  const { parent, clock, lines, volume, tell, isWritten, failures } = await open((at) =>
    writeFile(join(at, 'volumes'), ''),
  );
  await volume.made;
  expect(lines.join()).toContain('the directory of a credential cannot be made');
  tell('first');
  // Whoever waits for it is not held up.
  await volume.filled;
  expect(failures()).toBe(2);
  await rm(join(parent, 'volumes'));
  await clock.advance(2000);
  await isWritten('first');
});

it('what is closed is not tried again', async () => {
  const { parent, clock, volume } = await open((at) => writeFile(join(at, 'volumes'), ''));
  await volume.made;
  expect(clock.pendingTimers).toBe(1);
  await rm(join(parent, 'volumes'));
  await volume.close();
  expect(clock.pendingTimers).toBe(0);
  expect(await readdir(parent)).toEqual([]);
});
