/**
 * Installs what the HTTP/2 and gRPC tests run with into .cache/grpc, once for each state of what pins it: the server, the
 * clients and their libraries, h2spec, grpcurl and ghz. Prints how long each took. What cannot be had is said and left out:
 * the tests that need it then fail.
 */

import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { installOnce } from '../../support/installed-once.ts';
import { CACHE, GO_PROGRAMS, JAVA_CLASSES, PYTHON_PACKAGES } from './programs.ts';

const run = promisify(execFile);

const CLIENTS = join(import.meta.dirname, 'clients');
const NODE_CLIENT = join(CLIENTS, 'node');
const MAVEN_COPY = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies';

/** @param files that pin it. @param made is there once it is installed. */
function once(name: string, files: string, made: string, install: () => Promise<unknown>) {
  const sources = { directory: import.meta.dirname, files };
  return installOnce({
    name: `gRPC, ${name}`,
    made,
    sources,
    install,
    stamp: join(CACHE, `${name}.installed`),
  });
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
