/**
 * Installs the identity providers into .cache/providers, once for each state of what pins them: files checked against the digest in
 * `providers.ts`, Go modules against `go.sum`, and what Maven and pip bring by their own means. Prints how long each took. What
 * cannot be had is said and left out: the tests then fail in CI and skip elsewhere. Given names it installs those alone.
 */

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Installation, installOnce } from '../support/installed-once.ts';
import {
  CACHE,
  DJANGO,
  GLEWLWYD,
  HYDRA,
  type InstalledProvider,
  KEYCLOAK,
  MOCK_OAUTH2_SERVER,
  SPRING,
} from './providers.ts';

const run = promisify(execFile);

const wanted: readonly string[] = process.argv.slice(2);

/** A compiler lists what it downloads. */
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;

/**
 * Installs into an empty directory, which takes its place only when all went well.
 * @param sources the files that pin it, beside what `providers.ts` says of it.
 */
async function install(
  provider: InstalledProvider,
  into: (directory: string) => Promise<void>,
  sources?: Installation['sources'],
): Promise<void> {
  const { name, directory: made, ...pinned } = provider;
  if (wanted.length > 0 && !wanted.includes(name)) return;
  await installOnce({
    name,
    made,
    pinned,
    ...(sources === undefined ? {} : { sources }),
    async install() {
      const directory = await mkdtemp(join(CACHE, 'incoming-'));
      try {
        await into(directory);
        await rename(directory, made);
      } finally {
        await rm(directory, { recursive: true, force: true });
      }
    },
  });
}

/** Of a provider's own folder. */
function sourcesOf(folder: string, files: string): Installation['sources'] {
  return { directory: join(import.meta.dirname, folder), files };
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

/** Its database in memory is SQLite, which is C. */
async function installHydra(directory: string): Promise<void> {
  await run('go', ['build', '-tags', 'sqlite', '-ldflags', '-s -w', '-o', join(directory, 'hydra'), '.'], {
    cwd: join(import.meta.dirname, 'hydra'),
    env: { ...process.env, CGO_ENABLED: '1' },
    maxBuffer: MAX_OUTPUT_BYTES,
  });
}

/** The libraries of a `pom.xml`, which Maven checks against the digests of its repository. */
async function copyLibraries(project: string, directory: string): Promise<void> {
  const plugin = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies';
  await run('mvn', ['--batch-mode', '--quiet', plugin, `-DoutputDirectory=${directory}`], { cwd: project });
}

async function installSpring(directory: string): Promise<void> {
  const project = join(import.meta.dirname, 'spring-authorization-server');
  await copyLibraries(project, directory);
  const programs = ['Server.java', 'Api.java'].map((name) => join(project, name));
  await run('javac', ['-cp', `${directory}/*`, '-d', directory, ...programs]);
}

async function installDjango(directory: string): Promise<void> {
  const requirements = join(import.meta.dirname, 'django-oauth-toolkit/requirements.txt');
  const args = ['-m', 'pip', 'install', '--quiet', '--target', directory, '--requirement', requirements];
  await run('python3', args);
}

async function installFromRegistries(): Promise<void> {
  // One Maven at a time: they share a repository.
  await install(KEYCLOAK, installKeycloak);
  await install(SPRING, installSpring, sourcesOf('spring-authorization-server', '{pom.xml,*.java}'));
  await install(
    MOCK_OAUTH2_SERVER,
    (directory) => copyLibraries(join(import.meta.dirname, 'mock-oauth2-server'), directory),
    sourcesOf('mock-oauth2-server', 'pom.xml'),
  );
  await install(GLEWLWYD, installGlewlwyd);
  await install(DJANGO, installDjango, sourcesOf('django-oauth-toolkit', 'requirements.txt'));
}

// Compiling takes as long as all the others together.
const hydra = install(HYDRA, installHydra, sourcesOf('hydra', '{go.mod,go.sum,*.go}'));
await Promise.all([hydra, installFromRegistries()]);
