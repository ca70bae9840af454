/** A volume as the kubelet would mount it, filled from watched objects: what reads mounted Secrets reads these too. */

import { rm } from 'node:fs/promises';
import { layOutSecret, type SecretValues } from '../credentials/secret-layout.ts';
import { messageOf } from '../errors.ts';
import type { Logger } from '../log/logger.ts';
import type { Volume } from './brokered-credential.ts';
import type { ObjectValues, WatchedObjects } from './object-values.ts';

export interface LiveVolume {
  /** Resolves once there is a directory, so that it can be watched; never rejects. */
  readonly made: Promise<void>;
  /** Resolves once every object has been seen, or found missing, and the files are there; never rejects. */
  readonly filled: Promise<void>;
  /** Ends it and removes its files. */
  close(): Promise<void>;
}

export function openLiveVolume(
  { directory, files }: Volume,
  { objects, log }: { readonly objects: WatchedObjects; readonly log: Logger },
): LiveVolume {
  const filled = Promise.withResolvers<void>();
  const values = new Map<string, ObjectValues>();
  const wanted = new Set(files.map(({ kind, name }) => `${kind} ${name}`));
  let closed = false;
  /** Empty at first: whoever reads there finds files missing, and watches for them. */
  const layout = layOutSecret(
    directory,
    {},
    files.map(({ path }) => path),
  );
  /** One writing after the other, each of the newest values. */
  let writing: Promise<void> = layout.then(
    () => undefined,
    (error: unknown) =>
      log.error({ err: messageOf(error), directory }, 'the directory of a credential cannot be made'),
  );

  const made = writing;

  function contents(): SecretValues {
    return Object.fromEntries(
      files.flatMap(({ kind, name, key, path }) => {
        const value = values.get(`${kind} ${name}`)?.[key];
        return value === undefined ? [] : [[path, value]];
      }),
    );
  }

  async function write(): Promise<void> {
    if (closed) return;
    try {
      await (await layout).update(contents());
    } catch (error) {
      log.error({ err: messageOf(error), directory }, 'files of a credential cannot be written');
    }
    filled.resolve();
  }

  function changed(): void {
    if (values.size < wanted.size) return;
    writing = writing.then(write);
  }

  const ends = [...wanted].map((key) => {
    const [kind, name] = key.split(' ') as ['secret' | 'configMap', string];
    return objects.watch(kind, name, (next) => {
      values.set(key, next);
      changed();
    });
  });
  if (wanted.size === 0) changed();

  return {
    made,
    filled: filled.promise,
    async close() {
      closed = true;
      for (const end of ends) end();
      await writing;
      await rm(directory, { recursive: true, force: true });
    },
  };
}
