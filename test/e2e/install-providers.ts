/**
 * Installs the identity providers into .cache/providers, once for each version, each file checked against the digest in
 * `providers.ts`. What cannot be had is said and left out: the tests then fail in CI and skip elsewhere.
 */

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CACHE, GLEWLWYD, type InstalledProvider, KEYCLOAK, missing } from './providers.ts';

const run = promisify(execFile);

/** Installs into an empty directory, which takes its place only when all went well. */
async function install(
  provider: InstalledProvider,
  into: (directory: string) => Promise<void>,
): Promise<void> {
  if (missing(provider) === undefined) return;
  process.stdout.write(`installing ${provider.directory}\n`);
  await mkdir(CACHE, { recursive: true });
  const directory = await mkdtemp(join(CACHE, 'incoming-'));
  try {
    await into(directory);
    await rename(directory, provider.directory);
  } catch (error) {
    process.stdout.write(`${provider.name} cannot be installed: ${String(error)}\n`);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function installKeycloak(directory: string): Promise<void> {
  const plugin = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy';
  await run('mvn', [
    '--batch-mode',
    '--quiet',
    plugin,
    `-Dartifact=${KEYCLOAK.artifact}`,
    `-DoutputDirectory=${directory}`,
  ]);
  const archive = join(directory, KEYCLOAK.file);
  await check(archive, 'sha512', KEYCLOAK.sha512);
  await run('unzip', ['-q', archive, '-d', directory]);
  await rm(archive);
  const unpacked = join(directory, `keycloak-${KEYCLOAK.version}`);
  for (const name of await readdir(unpacked)) await rename(join(unpacked, name), join(directory, name));
  await rm(unpacked, { recursive: true });
}

/** Unpacked, not installed: it needs no rights, and leaves the machine as it was. */
async function installGlewlwyd(directory: string): Promise<void> {
  await run('apt-get', ['download', GLEWLWYD.package, ...GLEWLWYD.libraries], { cwd: directory });
  for (const archive of await readdir(directory)) {
    const path = join(directory, archive);
    if (archive.startsWith('glewlwyd_')) await check(path, 'sha256', GLEWLWYD.sha256);
    await run('dpkg-deb', ['--extract', path, directory]);
    await rm(path);
  }
}

async function check(path: string, algorithm: 'sha256' | 'sha512', expected: string): Promise<void> {
  const digest = createHash(algorithm)
    .update(await readFile(path))
    .digest('hex');
  if (digest !== expected) throw new Error(`${path} has the ${algorithm} ${digest}, expected ${expected}`);
}

await install(KEYCLOAK, installKeycloak);
await install(GLEWLWYD, installGlewlwyd);
