/**
 * Installs what the image's tests build and run with, from Debian (or Ubuntu), and writes the settings they need into
 * .cache/containers. The machine's own settings, images and containers are left alone.
 */

import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';

const DIRECTORY = join(import.meta.dirname, '../.cache/containers');

/** A program and its package. catatonit holds a pod's namespaces open. */
const PROGRAMS: readonly (readonly [string, string])[] = [
  ['buildah', 'buildah'],
  ['podman', 'podman'],
  ['runc', 'runc'],
  ['/usr/libexec/podman/catatonit', 'catatonit'],
];

/** Sockets in it have paths of at most 108 bytes, so it is not below the project. */
const RUN_DIRECTORY = join(tmpdir(), 'token-sidecar-containers');

/** runc also starts containers where control groups of version 1 and 2 are mixed; the limits need no CAP_SYS_RESOURCE. */
const CONTAINERS_CONF = `[containers]
default_ulimits = ["nofile=1024:1024", "nproc=8192:8192"]

[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
tmp_dir = ${JSON.stringify(join(RUN_DIRECTORY, 'libpod'))}
`;

const STORAGE_CONF = `[storage]
driver = "overlay"
graphroot = ${JSON.stringify(join(DIRECTORY, 'storage'))}
runroot = ${JSON.stringify(join(RUN_DIRECTORY, 'storage'))}
`;

function isInstalled(program: string): boolean {
  const directories = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin'];
  return program.startsWith('/')
    ? existsSync(program)
    : directories.some((directory) => existsSync(join(directory, program)));
}

function aptGet(...args: readonly string[]): void {
  execFileSync('apt-get', ['-qq', ...args], {
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}

const missing = PROGRAMS.filter(([program]) => !isInstalled(program)).map(([, name]) => name);
if (missing.length > 0 && process.getuid?.() === 0 && isInstalled('apt-get')) {
  process.stdout.write(`installing ${missing.join(', ')}\n`);
  aptGet('update');
  aptGet('install', '--yes', '--no-install-recommends', ...missing);
}
await mkdir(DIRECTORY, { recursive: true });
await writeFile(join(DIRECTORY, 'containers.conf'), CONTAINERS_CONF);
await writeFile(join(DIRECTORY, 'storage.conf'), STORAGE_CONF);
