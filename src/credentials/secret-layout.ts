import { randomUUID } from 'node:crypto';
import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';

export interface KubeletSecret {
  readonly directory: string;
  /** Swaps in a new version as one and removes the old. Files keep the names of the first version. */
  update(values: SecretValues): Promise<void>;
}

export type SecretValues = Readonly<Record<string, string | Buffer>>;

/**
 * Lays a Secret out in an empty directory as the kubelet does: each file is a link into `..data`, itself a link to a
 * directory of this version, swapped by rename (Kubernetes, pkg/volume/util/atomic_writer).
 * @param names of all files that there may be; one without a value is a link to nothing.
 */
export async function layOutSecret(
  directory: string,
  values: SecretValues,
  names: readonly string[] = Object.keys(values),
): Promise<KubeletSecret> {
  let current: string | undefined;

  async function update(next: SecretValues): Promise<void> {
    const version = join(directory, `..version_${randomUUID()}`);
    // Readable as its parent is, which says who may: a pod's user by the group of the volume.
    await mkdir(version);
    for (const [name, value] of Object.entries(next)) {
      await writeFile(join(version, name), value, { mode: 0o440 });
    }
    await symlink(basename(version), join(directory, '..data_tmp'));
    await rename(join(directory, '..data_tmp'), join(directory, '..data'));
    if (current !== undefined) await rm(current, { recursive: true });
    current = version;
  }

  await mkdir(directory, { recursive: true });
  await update(values);
  for (const name of names) await symlink(join('..data', name), join(directory, name));
  return { directory, update };
}
