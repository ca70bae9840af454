/** A volume as the kubelet would mount it, filled from watched objects: readers of mounted Secrets can read it, too. */

import { rm } from 'node:fs/promises';
import { messageOf } from '../platform/errors.ts';
import type { Logger } from '../platform/log/logger.ts';
import { type KubeletSecret, layOutSecret, type SecretValues } from '../platform/mounted/secret-layout.ts';
import type { Clock } from '../platform/time/clock.ts';
import type { Volume } from './brokered-credential.ts';
import type { ObjectValues, WatchedObjects } from './object-values.ts';

export interface LiveVolume {
  /** Resolves once the directory exists, so that it can be watched; never rejects. */
  readonly made: Promise<void>;
  /** Resolves once every object has been seen or found missing, and writing the files has succeeded or failed; never rejects. */
  readonly filled: Promise<void>;
  /** Ends it and removes its files. */
  close(): Promise<void>;
}

/** The wait before a failed write, for example to a full disk, is retried: doubled each time. */
const RETRY_MS = 1000;
const MAX_RETRY_MS = 60_000;

interface LiveVolumeOptions {
  readonly objects: WatchedObjects;
  readonly clock: Clock;
  readonly log: Logger;
}

export function openLiveVolume(
  { directory, files }: Volume,
  { objects, clock, log }: LiveVolumeOptions,
): LiveVolume {
  const filled = Promise.withResolvers<void>();
  const values = new Map<string, ObjectValues>();
  const wanted = new Set(files.map(({ kind, name }) => `${kind} ${name}`));
  const names = files.map(({ path }) => path);
  let closed = false;
  let layout: KubeletSecret | undefined;
  let failures = 0;
  let cancelRetry: (() => void) | undefined;

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
    cancelRetry?.();
    const isKnown = values.size === wanted.size;
    try {
      // Empty at first: readers find files missing, and watch for them.
      layout ??= await layOutSecret(directory, {}, names);
      if (isKnown) await layout.update(contents());
      failures = 0;
    } catch (error) {
      const retryInMs = Math.min(MAX_RETRY_MS, RETRY_MS * 2 ** failures++);
      const what =
        layout === undefined
          ? 'the directory of a credential cannot be made'
          : 'files of a credential cannot be written';
      log.error({ err: messageOf(error), directory, retryInMs }, what);
      if (!closed) cancelRetry = clock.after(retryInMs, writeNext);
    }
    if (isKnown) filled.resolve();
  }

  /** One write after the other, each with the newest values. */
  let writing: Promise<void> = Promise.resolve();
  function writeNext(): void {
    writing = writing.then(write);
  }

  writeNext();
  const made = writing;

  const ends = [...wanted].map((key) => {
    const [kind, name] = key.split(' ') as ['secret' | 'configMap', string];
    return objects.watch(kind, name, (next) => {
      values.set(key, next);
      if (values.size === wanted.size) writeNext();
    });
  });

  return {
    made,
    filled: filled.promise,
    async close() {
      closed = true;
      cancelRetry?.();
      for (const end of ends) end();
      await writing;
      await rm(directory, { recursive: true, force: true });
    },
  };
}
