import { type DirectoryWatchOptions, watchDirectory } from './directory-watch.ts';
import { type MountedSecret, readMountedSecret, sameSecret } from './mounted-secret.ts';

/** A mounted Secret as a live value: always the newest reading, announced when its content changes. */
export interface LiveSecret<Name extends string = string> {
  readonly directory: string;
  current(): MountedSecret<Name>;
  /** Reads again, and resolves once `current` is no older than this call and changes were announced. Never rejects. */
  refresh(): Promise<void>;
  /** Calls back after each change of content, good or bad. Returns the function that ends it. */
  onChange(listener: (reading: MountedSecret<Name>) => void): () => void;
  close(): void;
}

/** See `watchDirectory`. */
export type LiveSecretOptions = DirectoryWatchOptions;

/** Reads once, then watches. Never rejects: a Secret that is not there yet is a reading like any other. */
export async function openLiveSecret<const Name extends string>(
  directory: string,
  names: readonly Name[],
  options: LiveSecretOptions,
): Promise<LiveSecret<Name>> {
  const listeners = new Set<(reading: MountedSecret<Name>) => void>();
  let current = await readMountedSecret(directory, names);
  let looking: Promise<void> | undefined;
  let lookAgain = false;
  let closed = false;

  function look(): Promise<void> {
    lookAgain = true;
    looking ??= readUntilSettled().finally(() => {
      looking = undefined;
    });
    return looking;
  }

  async function readUntilSettled(): Promise<void> {
    while (lookAgain && !closed) {
      lookAgain = false;
      const next = await readMountedSecret(directory, names);
      if (closed || sameSecret(current, next)) continue;
      current = next;
      for (const listener of listeners) listener(next);
    }
  }

  const unwatch = watchDirectory(directory, options, () => void look());
  // What changed between the first reading and the watch would otherwise wait for the poll.
  await look();

  return {
    directory,
    current: () => current,
    refresh: look,
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    close() {
      closed = true;
      unwatch();
      listeners.clear();
    },
  };
}
