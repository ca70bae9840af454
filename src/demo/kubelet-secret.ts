import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export interface KubeletSecret {
  readonly directory: string;
  /** Swaps in a new version as one and removes the old. Files keep the names of the first version. */
  update(values: SecretValues): Promise<void>;
}

export type SecretValues = Readonly<Record<string, string | Buffer>>;

/**
 * Lays a Secret out in an empty directory as the kubelet does: each file is a link into `..data`, itself a link to a
 * timestamped directory, swapped by rename (Kubernetes, pkg/volume/util/atomic_writer).
 */
export async function layOutSecret(directory: string, values: SecretValues): Promise<KubeletSecret> {
  let count = 0;
  let current: string | undefined;

  async function update(next: SecretValues): Promise<void> {
    const version = `..${new Date().toISOString().replace(/[-:.TZ]/g, '_')}${++count}`;
    await mkdir(join(directory, version));
    for (const [name, value] of Object.entries(next)) {
      await writeFile(join(directory, version, name), value, { mode: 0o440 });
    }
    await symlink(version, join(directory, '..data_tmp'));
    await rename(join(directory, '..data_tmp'), join(directory, '..data'));
    if (current !== undefined) await rm(join(directory, current), { recursive: true });
    current = version;
  }

  await update(values);
  for (const name of Object.keys(values)) await symlink(join('..data', name), join(directory, name));
  return { directory, update };
}
