import { type DirectoryWatchOptions, watchDirectory } from './directory-watch.ts';
import {
  type MountedFiles,
  type MountedSecret,
  readMountedFiles,
  readMountedSecret,
  sameFiles,
  sameSecret,
} from './mounted-secret.ts';

/** Mounted files as a live value: always the newest reading, announced when its content changes. */
interface LiveReading<Reading> {
  readonly directory: string;
  current(): Reading;
  /** Reads again; resolves once `current` is no older than this call and changes were announced. Never rejects. */
  refresh(): Promise<void>;
  /** Calls back after each change of content, good or bad. Returns a function that stops it. */
  onChange(listener: (reading: Reading) => void): () => void;
  close(): void;
}

/** A mounted Secret of which every file is needed. */
export type LiveSecret<Name extends string = string> = LiveReading<MountedSecret<Name>>;

/** Files of a directory, some of which may be missing. */
type LiveFiles<Name extends string = string> = LiveReading<MountedFiles<Name>>;

/** See `watchDirectory`. */
export type LiveSecretOptions = DirectoryWatchOptions;

/** Reads once, then watches. Never rejects: a missing Secret is a reading like any other. */
export async function openLiveSecret<const Name extends string>(
  directory: string,
  names: readonly Name[],
  options: LiveSecretOptions,
): Promise<LiveSecret<Name>> {
  return await follow(directory, () => readMountedSecret(directory, names), sameSecret, options);
}

/** The same for files, some of which may be missing. */
export async function openLiveFiles<const Name extends string>(
  directory: string,
  names: readonly Name[],
  options: LiveSecretOptions,
): Promise<LiveFiles<Name>> {
  return await follow(directory, () => readMountedFiles(directory, names), sameFiles, options);
}

async function follow<Reading>(
  directory: string,
  read: () => Promise<Reading>,
  same: (a: Reading, b: Reading) => boolean,
  options: LiveSecretOptions,
): Promise<LiveReading<Reading>> {
  const listeners = new Set<(reading: Reading) => void>();
  let current = await read();
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
      const next = await read();
      if (closed || same(current, next)) continue;
      current = next;
      for (const listener of listeners) listener(next);
    }
  }

  const unwatch = watchDirectory(directory, options, () => void look());
  // A change between the first reading and the watch would otherwise wait for the poll.
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
