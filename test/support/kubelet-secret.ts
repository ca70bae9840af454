import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/**
 * A Secret volume as the kubelet keeps one: files are links into `..data`, which is itself a link to a timestamped
 * directory and is swapped by rename (pkg/volume/util/atomic_writer).
 */
export class KubeletSecret {
  readonly directory: string;
  #version = 0;
  #current: string | undefined;

  private constructor(directory: string) {
    this.directory = directory;
  }

  static async create(values: Readonly<Record<string, string | Buffer>>): Promise<KubeletSecret> {
    const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-secret-'));
    onTestFinished(() => rm(directory, { recursive: true, force: true }));
    const secret = new KubeletSecret(directory);
    await secret.update(values);
    for (const name of Object.keys(values)) await symlink(join('..data', name), join(directory, name));
    return secret;
  }

  /** Swaps in a new version as one, and removes the old, as the kubelet does. */
  async update(values: Readonly<Record<string, string | Buffer>>): Promise<void> {
    this.#version += 1;
    const version = `..2030_01_01_00_00_00.${this.#version}`;
    await mkdir(join(this.directory, version));
    for (const [name, value] of Object.entries(values))
      await writeFile(join(this.directory, version, name), value);
    await symlink(version, join(this.directory, '..data_tmp'));
    await rename(join(this.directory, '..data_tmp'), join(this.directory, '..data'));
    if (this.#current !== undefined) await rm(join(this.directory, this.#current), { recursive: true });
    this.#current = version;
  }
}
