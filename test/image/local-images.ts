/**
 * Images made from this machine's packages, for want of a registry: a base as distroless makes its own (Debian packages
 * unpacked, Node in /nodejs/bin, no shell), and a builder, which is that with a shell and npm.
 */

import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { imageExists, podman, run } from './container-tools.ts';

/** To be raised when what the images hold is changed here. */
const RECIPE = 2;

export const BASE_IMAGE = `localhost/token-sidecar-base:${process.version}-${RECIPE}`;
export const BUILD_IMAGE = `localhost/token-sidecar-builder:${process.version}-${RECIPE}`;

/** What Node is linked against, and what any base has. */
const PACKAGES = ['base-files', 'netbase', 'tzdata', 'libc6', 'libgcc-s1', 'libstdc++6', 'libatomic1'];

/** Where Debian keeps the certificate authorities. */
const SYSTEM_AUTHORITIES = '/etc/ssl/certs/ca-certificates.crt';

/** Made once a version of Node, and kept. */
export async function provideLocalImages(): Promise<void> {
  if (!(await imageExists(BASE_IMAGE))) {
    await makeImage(BASE_IMAGE, PACKAGES, ['PATH=/nodejs/bin'], async () => undefined);
  }
  if (!(await imageExists(BUILD_IMAGE))) {
    // A builder trusts the registries that this machine trusts.
    const authorities = [process.env['NODE_EXTRA_CA_CERTS'], SYSTEM_AUTHORITIES].find(
      (path) => path !== undefined && existsSync(path),
    );
    await makeImage(
      BUILD_IMAGE,
      [...PACKAGES, 'busybox-static'],
      [
        'PATH=/nodejs/bin:/usr/local/bin:/bin:/usr/bin',
        ...(authorities === undefined ? [] : ['NODE_EXTRA_CA_CERTS=/etc/authorities.crt']),
      ],
      async (rootFileSystem) => {
        if (authorities !== undefined) await cp(authorities, join(rootFileSystem, 'etc/authorities.crt'));
        await addNpm(rootFileSystem);
        await run('chroot', rootFileSystem, '/bin/busybox', '--install', '-s');
      },
    );
  }
}

async function makeImage(
  name: string,
  packages: readonly string[],
  environment: readonly string[],
  complete: (rootFileSystem: string) => Promise<void>,
): Promise<void> {
  const temporary = await mkdtemp(join(tmpdir(), 'token-sidecar-image-'));
  try {
    const rootFileSystem = join(temporary, 'root');
    await unpack(packages, join(temporary, 'packages'), rootFileSystem);
    await mkdir(join(rootFileSystem, 'nodejs/bin'), { recursive: true });
    await cp(process.execPath, join(rootFileSystem, 'nodejs/bin/node'));
    await complete(rootFileSystem);
    const archive = join(temporary, 'root.tar');
    await run('tar', '-C', rootFileSystem, '-cf', archive, '.');
    const changes = environment.flatMap((variable) => ['--change', `ENV ${variable}`]);
    await podman('import', '--quiet', ...changes, archive, name);
  } finally {
    await rm(temporary, { recursive: true });
  }
}

async function unpack(packages: readonly string[], archives: string, rootFileSystem: string): Promise<void> {
  await mkdir(archives, { mode: 0o777 });
  // apt-get writes into its working directory.
  await run('sh', '-c', 'cd "$0" && exec apt-get -qq download "$@"', archives, ...packages);
  for (const archive of await readdir(archives)) {
    await run('dpkg-deb', '-x', join(archives, archive), rootFileSystem);
  }
}

/** The npm that runs on this machine. */
async function addNpm(rootFileSystem: string): Promise<void> {
  const program = await run('sh', '-c', 'readlink -f "$(command -v npm)"');
  const bin = join(rootFileSystem, 'usr/local/bin');
  await mkdir(bin, { recursive: true });
  await cp(dirname(dirname(program)), join(rootFileSystem, 'usr/local/lib/npm'), { recursive: true });
  await symlink('../lib/npm/bin/npm-cli.js', join(bin, 'npm'));
}
