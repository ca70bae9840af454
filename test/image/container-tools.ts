/** buildah and podman, with settings and storage of their own (scripts/install-container-tools.ts). */

import { execFile, execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

export const ROOT = join(import.meta.dirname, '../..');

const SETTINGS = join(ROOT, '.cache/containers');

export const CONTAINER_ENVIRONMENT: NodeJS.ProcessEnv = {
  ...process.env,
  CONTAINERS_CONF: join(SETTINGS, 'containers.conf'),
  CONTAINERS_STORAGE_CONF: join(SETTINGS, 'storage.conf'),
};

/** Why images can't be built and run on this machine; undefined where they can. */
export function whyUnavailable(): string | undefined {
  if (process.platform !== 'linux') return 'containers need Linux';
  if (process.getuid?.() !== 0) return 'building and running containers needs root here';
  for (const program of ['buildah', 'podman', 'runc', 'dpkg-deb', 'apt-get']) {
    try {
      execFileSync(program, ['--version'], { stdio: 'ignore' });
    } catch {
      return `${program} is not installed`;
    }
  }
  return existsSync(SETTINGS) ? undefined : `${SETTINGS} is missing: run scripts/install-container-tools.ts`;
}

/** Runs a program to its end, politely, and gives what it printed to standard output. */
export async function run(program: string, ...args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)('nice', ['-n', '10', program, ...args], {
    env: CONTAINER_ENVIRONMENT,
    cwd: ROOT,
    maxBuffer: 64 * 1024 * 1024,
  });
  return stdout.trim();
}

export const podman = (...args: readonly string[]): Promise<string> => run('podman', ...args);

export async function imageExists(image: string): Promise<boolean> {
  return podman('image', 'exists', image).then(
    () => true,
    () => false,
  );
}

/** podman's own description of an image, a container or a pod. */
export async function inspect<Description>(name: string): Promise<Description> {
  const [description] = JSON.parse(await podman('inspect', name)) as Description[];
  if (description === undefined) throw new Error(`podman knows no ${name}`);
  return description;
}
