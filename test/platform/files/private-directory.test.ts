import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { makePrivateDirectory } from '../../../src/platform/files/private-directory.ts';

/** A directory whose path has so many bytes. */
async function pathOf(bytes: number): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'ts-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const path = join(directory, 'x'.repeat(bytes - directory.length - 1));
  await mkdir(path);
  return path;
}

it('works below a path of 88 bytes, beside another that lives there', async () => {
  const parent = await pathOf(88);
  const first = await makePrivateDirectory(parent);
  const second = await makePrivateDirectory(parent);
  expect((await readdir(parent)).length).toBe(2);
  await first.remove();
  await second.remove();
  expect(await readdir(parent)).toEqual([]);
});

it('refuses a longer one in a sentence, and leaves nothing there', async () => {
  const parent = await pathOf(89);
  await expect(makePrivateDirectory(parent)).rejects.toThrow(
    `--secrets-dir: ${parent}: expected a path of at most 88 bytes`,
  );
  expect(await readdir(parent)).toEqual([]);
});
