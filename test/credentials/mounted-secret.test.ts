import { execFileSync } from 'node:child_process';
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readMountedSecret } from '../../src/credentials/mounted-secret.ts';
import { mountSecret } from '../support/kubelet-secret.ts';

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

it('never mixes two versions, however often they are swapped', async () => {
  const secret = await mountSecret({ client_id: 'v0', client_secret: 'v0' });
  let swapping = true;
  const swaps = (async () => {
    for (let n = 1; n <= 200; n++) await secret.update({ client_id: `v${n}`, client_secret: `v${n}` });
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
