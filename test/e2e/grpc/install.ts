/**
 * Installs what the HTTP/2 and gRPC tests run with into .cache/grpc, once for each state of what pins it: the server, the
 * clients and their libraries, h2spec, grpcurl and ghz. Prints how long each took. What cannot be had is said and left out:
 * the tests that need it then fail.
 */

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, globSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CACHE, GO_PROGRAMS, JAVA_CLASSES, PYTHON_PACKAGES } from './programs.ts';

const run = promisify(execFile);

const CLIENTS = join(import.meta.dirname, 'clients');
const NODE_CLIENT = join(CLIENTS, 'node');
const MAVEN_COPY = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies';

/** Runs `install` unless it has succeeded with the files as they are, and what it `made` is still there. */
async function once(
  name: string,
  files: string,
  made: string,
  install: () => Promise<unknown>,
): Promise<void> {
  const stamp = join(CACHE, `${name}.installed`);
  const digest = createHash('sha256');
  const exclude = ['**/node_modules/**'];
  for (const file of globSync(files, { cwd: import.meta.dirname, exclude }).sort()) {
    digest.update(await readFile(join(import.meta.dirname, file)));
  }
  const version = digest.digest('hex');
  if (existsSync(made) && (await readFile(stamp, 'utf8').catch(() => '')) === version) return;
  await rm(stamp, { force: true });
  const beganAtMs = performance.now();
  const outcome = await install().then(
    () => 'installed',
    (error: Error) => `cannot be installed: ${error.message}`,
  );
  if (outcome === 'installed') await writeFile(stamp, version);
  const seconds = (performance.now() - beganAtMs) / 1000;
  process.stdout.write(`gRPC, ${name}: ${outcome} (${seconds.toFixed(0)} s)\n`);
}

/** One build compiles what they share once. */
async function installGo(): Promise<void> {
  await run('go', ['build', '-ldflags', '-s -w', '-o', `${GO_PROGRAMS}/`, './...', 'tool'], {
    cwd: import.meta.dirname,
    env: { ...process.env, CGO_ENABLED: '0' },
  });
}

async function installPython(): Promise<void> {
  const requirements = join(CLIENTS, 'python/requirements.txt');
  const args = ['-m', 'pip', 'install', '--quiet', '--target', PYTHON_PACKAGES, '--upgrade'];
  await run('python3', [...args, '--requirement', requirements]);
}

async function installJava(): Promise<void> {
  const directory = join(CLIENTS, 'java');
  await rm(JAVA_CLASSES, { recursive: true, force: true });
  await run('mvn', ['--batch-mode', '--quiet', MAVEN_COPY, `-DoutputDirectory=${JAVA_CLASSES}`], {
    cwd: directory,
  });
  await run('javac', ['-cp', `${JAVA_CLASSES}/*`, '-d', JAVA_CLASSES, join(directory, 'Client.java')]);
}

async function installNode(): Promise<void> {
  await run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: NODE_CLIENT });
}

await mkdir(CACHE, { recursive: true });
await Promise.all([
  once('go', '{go.mod,go.sum,**/*.{go,proto}}', GO_PROGRAMS, installGo),
  once('python', 'clients/python/requirements.txt', PYTHON_PACKAGES, installPython),
  once('java', 'clients/java/*', JAVA_CLASSES, installJava),
  once('node', 'clients/node/package*.json', join(NODE_CLIENT, 'node_modules'), installNode),
]);
