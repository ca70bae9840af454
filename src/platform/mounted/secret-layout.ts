import { randomUUID } from 'node:crypto';
import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';

export interface KubeletSecret {
  readonly directory: string;
  /** Swaps in a new version atomically and removes the old one. Files keep the names of the first version. */
  update(values: SecretValues): Promise<void>;
}

export type SecretValues = Readonly<Record<string, string | Buffer>>;

/**
 * Lays a Secret out in an empty directory as the kubelet does: each file is a link into `..data`, itself a link to a
 * directory of this version, swapped by rename (Kubernetes, pkg/volume/util/atomic_writer). A failure leaves nothing
 * behind.
 * @param names of all possible files; one without a value is a link to nothing.
 */
export async function layOutSecret(
  directory: string,
  values: SecretValues,
  names: readonly string[] = Object.keys(values),
): Promise<KubeletSecret> {
  let current: string | undefined;
  const data = join(directory, '..data');
  const newData = join(directory, '..data_tmp');

  async function update(next: SecretValues): Promise<void> {
    const version = join(directory, `..version_${randomUUID()}`);
    try {
      // Readable as its parent directory is, which says who may: a pod's user through the volume's group.
      await mkdir(version);
      for (const [name, value] of Object.entries(next)) {
        await writeFile(join(version, name), value, { mode: 0o440 });
      }
      await symlink(basename(version), newData);
      await rename(newData, data);
    } catch (error) {
      // A failed write must not go on filling a full disk.
      await remove([newData, version]);
      throw error;
    }
    const before = current;
    current = version;
    if (before !== undefined) await rm(before, { recursive: true });
  }

  await mkdir(directory, { recursive: true });
  await update(values);
  const links: string[] = [];
  try {
    for (const name of names) {
      const link = join(directory, name);
      await symlink(join('..data', name), link);
      links.push(link);
    }
  } catch (error) {
    // So that the directory is empty for the next try.
    await remove([...links, data, ...(current === undefined ? [] : [current])]);
    throw error;
  }
  return { directory, update };
}

async function remove(paths: readonly string[]): Promise<void> {
  for (const path of paths) await rm(path, { recursive: true, force: true });
}
