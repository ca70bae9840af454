import type { Clock } from '../clock.ts';
import { watchDirectory } from './directory-watch.ts';
import { type MountedSecret, readMountedSecret, sameSecret } from './mounted-secret.ts';

/** A mounted Secret as a live value: always the newest reading, announced when its content changes. */
export interface LiveSecret<Name extends string = string> {
  readonly directory: string;
  current(): MountedSecret<Name>;
  /** Calls back after each change of content, good or bad. Returns the function that ends it. */
  onChange(listener: (reading: MountedSecret<Name>) => void): () => void;
  close(): void;
}

export interface LiveSecretOptions {
  readonly clock: Clock;
  /** See `watchDirectory`. */
  readonly pollMs: number;
}

/** Reads once, then watches. Never rejects: a Secret that is not there yet is a reading like any other. */
export async function openLiveSecret<const Name extends string>(
  directory: string,
  names: readonly Name[],
  options: LiveSecretOptions,
): Promise<LiveSecret<Name>> {
  const listeners = new Set<(reading: MountedSecret<Name>) => void>();
  let current = await readMountedSecret(directory, names);
  let reading = false;
  let lookAgain = false;
  let closed = false;

  async function look(): Promise<void> {
    if (reading) {
      lookAgain = true;
      return;
    }
    reading = true;
    do {
      lookAgain = false;
      const next = await readMountedSecret(directory, names);
      if (closed) return;
      if (!sameSecret(current, next)) {
        current = next;
        for (const listener of listeners) listener(next);
      }
    } while (lookAgain);
    reading = false;
  }

  const unwatch = watchDirectory(directory, options, () => void look());
  // What changed between the first reading and the watch would otherwise wait for the poll.
  await look();

  return {
    directory,
    current: () => current,
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
