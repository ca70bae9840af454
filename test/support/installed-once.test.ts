import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { installOnce } from './installed-once.ts';

async function world() {
  vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  onTestFinished(() => void vi.restoreAllMocks());
  const directory = await mkdtemp(join(tmpdir(), 'installed-once-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const made = join(directory, 'cache/made');
  const sources = { directory, files: 'go.{mod,sum}' };
  await writeFile(join(directory, 'go.mod'), 'one');
  const make = async () => void (await mkdir(made));
  const install = (options: { pinned?: unknown; install?: () => Promise<unknown> } = {}) =>
    installOnce({ name: 'it', made, sources, install: make, ...options });
  return { directory, made, install };
}

it('is installed once for each state of what pins it', async () => {
  const { directory, install } = await world();
  expect([await install(), await install()]).toEqual(['installed', 'present']);
  await writeFile(join(directory, 'go.mod'), 'two');
  expect([await install(), await install()]).toEqual(['installed', 'present']);
  expect(await install({ pinned: { version: 2 } })).toBe('installed');
  await writeFile(join(directory, 'go.sum'), '');
  expect(await install({ pinned: { version: 2 } })).toBe('installed');
});

it('is installed again where it is gone', async () => {
  const { made, install } = await world();
  await install();
  await rm(made, { recursive: true });
  expect(await install()).toBe('installed');
});

it('leaves nothing of another version behind where it fails, and is tried again', async () => {
  const { directory, made, install } = await world();
  await install();
  await writeFile(join(directory, 'go.mod'), 'two');
  const fails = () => Promise.reject(new Error('no network'));
  expect(await install({ install: fails })).toBe('failed');
  expect(existsSync(made)).toBe(false);
  expect([await install(), await install()]).toEqual(['installed', 'present']);
});

it('wants files that pin it', async () => {
  const { directory, install } = await world();
  await rm(join(directory, 'go.mod'));
  await expect(install()).rejects.toThrow('has no file go.{mod,sum}');
});
