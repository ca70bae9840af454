import { chmod, mkdir, mkdtemp, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { layOutSecret } from '../../../src/platform/mounted/secret-layout.ts';

async function empty(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-layout-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  return directory;
}

it('a version that cannot be written leaves nothing behind, and the one before stays', async () => {
  const directory = await empty();
  const { update } = await layOutSecret(directory, { client_id: 'shop' });
  const before = await readdir(directory);
  await expect(update({ client_id: 'new', 'nowhere/secret': 'x' })).rejects.toThrow('ENOENT');
  expect(await readdir(directory)).toEqual(before);
  expect(await readFile(join(directory, 'client_id'), 'utf8')).toBe('shop');
  await update({ client_id: 'next' });
  expect(await readFile(join(directory, 'client_id'), 'utf8')).toBe('next');
  expect((await readdir(directory)).length).toBe(before.length);
});

it('a version that cannot be swapped in leaves nothing behind', async () => {
  const directory = await empty();
  const { update } = await layOutSecret(directory, { client_id: 'shop' });
  const data = join(directory, '..data');
  await rename(data, join(directory, 'aside'));
  await mkdir(data);
  const before = await readdir(directory);
  await expect(update({ client_id: 'new' })).rejects.toThrow(/EISDIR|EEXIST|ENOTEMPTY/);
  expect(await readdir(directory)).toEqual(before);
  await rm(data, { recursive: true });
  await rename(join(directory, 'aside'), data);
  await update({ client_id: 'next' });
  expect(await readFile(join(directory, 'client_id'), 'utf8')).toBe('next');
});

it('a layout that cannot be made leaves its directory empty', async () => {
  const directory = await empty();
  await expect(layOutSecret(directory, {}, ['client_id', 'nowhere/secret'])).rejects.toThrow('ENOENT');
  expect(await readdir(directory)).toEqual([]);
  await layOutSecret(directory, { client_id: 'shop' });
  expect(await readFile(join(directory, 'client_id'), 'utf8')).toBe('shop');
});

it('each version is read by whom the volume lets in, and its files by the group', async () => {
  const directory = await empty();
  await chmod(directory, 0o2750);
  const { update } = await layOutSecret(directory, { client_id: 'shop' });
  await update({ client_id: 'shop' });

  const version = await stat(join(directory, '..data'));
  const file = await stat(join(directory, 'client_id'));
  // The set-group-id bit hands the volume's group on to what comes later.
  expect(version.mode & 0o2050).toBe(0o2050);
  expect(file.mode & 0o777).toBe(0o440);
  expect([version.gid, file.gid]).toEqual([file.gid, (await stat(directory)).gid]);
});
