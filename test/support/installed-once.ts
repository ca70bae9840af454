/** What tests run with, installed anew when what pins it has changed. */

import { createHash } from 'node:crypto';
import { existsSync, globSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

export interface Installation {
  /** As it is printed. */
  readonly name: string;
  /** File or directory that is there once it is installed; in a cache, so that its stamp may stand beside it. */
  readonly made: string;
  /** The files that pin it. */
  readonly sources?: { readonly directory: string; readonly files: string };
  /** What pins it beside files: a version, a digest. */
  readonly pinned?: unknown;
  readonly install: () => Promise<unknown>;
  /** Where the stamp stands; `made` with an ending of its own unless given. */
  readonly stamp?: string;
}

/** A digest of what pins it. */
export async function pinOf({ sources, pinned }: Pick<Installation, 'sources' | 'pinned'>): Promise<string> {
  const digest = createHash('sha256').update(JSON.stringify(pinned ?? null));
  if (sources === undefined) return digest.digest('hex');
  const { directory, files } = sources;
  const found = globSync(files, { cwd: directory, exclude: ['**/node_modules/**'] }).sort();
  if (found.length === 0) throw new Error(`${directory} has no file ${files}`);
  for (const file of found) digest.update(`${file}\0`).update(await readFile(join(directory, file)));
  return digest.digest('hex');
}

/**
 * Runs `install` unless it has succeeded with the same pins, and what it made is still there. What other pins made is gone
 * first: where `install` fails nothing is left that a test might run with. Says how it went, and how long it took.
 */
export async function installOnce(installation: Installation): Promise<'present' | 'installed' | 'failed'> {
  const { name, made, install, stamp = `${made}.installed` } = installation;
  const pin = await pinOf(installation);
  if (existsSync(made) && (await readFile(stamp, 'utf8').catch(() => '')) === pin) return 'present';
  await rm(stamp, { force: true });
  await rm(made, { recursive: true, force: true });
  await mkdir(dirname(made), { recursive: true });
  const beganAtMs = performance.now();
  const outcome = await install().then(
    () => 'installed',
    (error: Error) => `cannot be installed: ${error.message}`,
  );
  if (outcome === 'installed') await writeFile(stamp, pin);
  const seconds = (performance.now() - beganAtMs) / 1000;
  process.stdout.write(`${name}: ${outcome} (${seconds.toFixed(0)} s)\n`);
  return outcome === 'installed' ? 'installed' : 'failed';
}
