import { execFileSync } from 'node:child_process';
import { renameSync, rmSync, symlinkSync } from 'node:fs';
import { mkdir, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readMountedSecret } from '../../../src/platform/mounted/mounted-secret.ts';
import { mountSecret } from '../../support/kubelet-secret.ts';
import { volume } from '../../support/volume.ts';

const NAMES = ['client_id', 'client_secret'] as const;
const GOOD = { client_id: 'shop', client_secret: 's3cret' };

it('reads both files of the current version', async () => {
  const secret = await mountSecret(GOOD);
  expect(await readMountedSecret(secret.directory, NAMES)).toEqual({ state: 'loaded', values: GOOD });
});

it('reads a plain directory too', async () => {
  const directory = join((await mountSecret({})).directory, 'plain');
  await mkdir(directory);
  for (const [name, value] of Object.entries(GOOD)) await writeFile(join(directory, name), value);
  expect(await readMountedSecret(directory, NAMES)).toEqual({ state: 'loaded', values: GOOD });
});

it.each([
  ['s3cret\n', 's3cret'],
  ['s3cret\r\n', 's3cret'],
  ['s3cret\n\n', 's3cret\n'],
  [' s3cret ', ' s3cret '],
  ['pässwörd: +%/=&', 'pässwörd: +%/=&'],
  ['\uFEFFs3cret', '\uFEFFs3cret'],
])('takes one line end off %j', async (content, value) => {
  const { directory } = await mountSecret({ ...GOOD, client_secret: content });
  expect(await readMountedSecret(directory, NAMES)).toMatchObject({ values: { client_secret: value } });
});

it.each<[string, string, (path: string) => Promise<unknown>]>([
  ['missing', 'does not exist', (path) => rm(path)],
  ['empty', 'is empty', (path) => writeFile(path, '')],
  ['empty', 'is empty', (path) => writeFile(path, '\n')],
  ['oversized', 'is larger than 65536 bytes', (path) => writeFile(path, 'x'.repeat(65_537))],
  ['malformed', 'is not UTF-8', (path) => writeFile(path, Buffer.from([0x73, 0xff, 0x33]))],
  ['unreadable', 'is not a regular file', (path) => rm(path).then(() => mkdir(path))],
  ['unreadable', 'is not a regular file', (path) => rm(path).then(() => void execFileSync('mkfifo', [path]))],
  ['unreadable', 'cannot be read: ELOOP', (path) => rm(path).then(() => symlink(path, path))],
])('says that a file is %s: %s', async (state, detail, spoil) => {
  const { directory } = await mountSecret(GOOD);
  await spoil(join(directory, '..data', 'client_secret'));
  const reading = await readMountedSecret(directory, NAMES);
  const path = join(directory, 'client_secret');
  expect(reading).toEqual({ state, detail: expect.stringContaining(`${path} ${detail}`) });
});

it('says that the whole directory is missing', async () => {
  expect(await readMountedSecret('/nonexistent/secret', NAMES)).toEqual({
    state: 'missing',
    detail: '/nonexistent/secret/client_id does not exist',
  });
});

describe('a Secret that is swapped between the reading of one file and of the next', () => {
  /** The names, with something that happens when the second is asked for. */
  function* interrupted(swap: () => void): Generator<(typeof NAMES)[number]> {
    yield 'client_id';
    swap();
    yield 'client_secret';
  }

  async function readAmid(removeOld: boolean) {
    const { directory } = await mountSecret({ client_id: 'v1', client_secret: 'v1' });
    const old = await realpath(join(directory, '..data'));
    await mkdir(join(directory, '..next'));
    for (const name of NAMES) await writeFile(join(directory, '..next', name), 'v2');
    let swapped = false;
    const names = {
      [Symbol.iterator]: () =>
        interrupted(() => {
          if (swapped) return;
          swapped = true;
          symlinkSync('..next', join(directory, '..data_tmp'));
          renameSync(join(directory, '..data_tmp'), join(directory, '..data'));
          if (removeOld) rmSync(old, { recursive: true });
        }),
    } as unknown as typeof NAMES;
    return await readMountedSecret(directory, names);
  }

  it('is read as it was when the old version is still there', async () => {
    expect(await readAmid(false)).toEqual({
      state: 'loaded',
      values: { client_id: 'v1', client_secret: 'v1' },
    });
  });

  it('is read anew as a whole when the old version is gone', async () => {
    expect(await readAmid(true)).toEqual({
      state: 'loaded',
      values: { client_id: 'v2', client_secret: 'v2' },
    });
  });
});

const SWAPS = volume(60, 200);

it('never mixes two versions, however often they are swapped', async () => {
  const secret = await mountSecret({ client_id: 'v0', client_secret: 'v0' });
  let swapping = true;
  const swaps = (async () => {
    for (let n = 1; n <= SWAPS; n++) await secret.update({ client_id: `v${n}`, client_secret: `v${n}` });
    swapping = false;
  })();
  let readings = 0;
  while (swapping) {
    const reading = await readMountedSecret(secret.directory, NAMES);
    expect(reading.state).toBe('loaded');
    if (reading.state === 'loaded') expect(reading.values.client_id).toBe(reading.values.client_secret);
    readings += 1;
  }
  await swaps;
  expect(readings).toBeGreaterThan(10);
});
