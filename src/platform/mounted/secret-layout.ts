import { randomUUID } from 'node:crypto';
import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';

export interface KubeletSecret {
  readonly directory: string;
  /** Swaps in a new version atomically. Ignores new names. */
  update(values: SecretValues): Promise<void>;
}

export type SecretValues = Readonly<Record<string, string | Buffer>>;

/**
 * Lays a Secret out as the kubelet does (pkg/volume/util/atomic_writer): files are links into `..data`, which is
 * swapped by rename. A failure leaves nothing behind.
 * @param names of all files; one without a value is a link to nothing.
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
      // Who may read depends on the parent directory.
      await mkdir(version);
      for (const [name, value] of Object.entries(next)) {
        await writeFile(join(version, name), value, { mode: 0o440 });
      }
      await symlink(basename(version), newData);
      await rename(newData, data);
    } catch (error) {
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
    // The next try needs an empty directory.
    await remove([...links, data, ...(current === undefined ? [] : [current])]);
    throw error;
  }
  return { directory, update };
}

async function remove(paths: readonly string[]): Promise<void> {
  for (const path of paths) await rm(path, { recursive: true, force: true });
}
