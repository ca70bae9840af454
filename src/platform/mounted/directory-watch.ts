import { type FSWatcher, type Stats, statSync, watch } from 'node:fs';
import { stat } from 'node:fs/promises';
import { systemCodeOf } from '../errors.ts';
import type { Clock } from '../time/clock.ts';

export interface DirectoryWatchOptions {
  readonly clock: Clock;
  /** Some file systems lose notifications. */
  readonly pollMs: number;
  /** Called when `by` changes from notification. */
  readonly onMode?: (mode: WatchMode) => void;
  readonly watch?: typeof watch;
}

export type WatchMode = { readonly by: 'notification' } | { readonly by: 'polling'; readonly code: string };

/** The kubelet's swap causes several notifications. */
const SETTLE_MS = 20;

/** How often to look which directory is at the path: a watch follows its directory. */
const COMPARE_MS = 500;

/**
 * Calls `look` soon after a change, and every `pollMs`; it finds out whether anything changed. Watches the directory,
 * since a watched file goes silent with the kubelet's first swap.
 * @returns a function that ends the watch.
 */
export function watchDirectory(
  directory: string,
  options: DirectoryWatchOptions,
  look: () => void,
): () => void {
  const { clock, pollMs } = options;
  const watchPath = options.watch ?? watch;
  let mode: WatchMode = { by: 'notification' };
  let watcher: FSWatcher | undefined;
  let watched: string;
  let cancelSettle: (() => void) | undefined;
  let cancelCompare: () => void;
  let renewedAtMs = clock.monotonicMs();
  let hasEnded = false;

  function attach(): void {
    watcher?.close();
    watcher = undefined;
    // A change before the watch is seen by the next comparison.
    watched = identityNow(directory);
    try {
      watcher = watchPath(directory, { persistent: false }, settle);
      watcher.on('error', (error) => changeMode(pollingFor(error)));
      changeMode({ by: 'notification' });
    } catch (error) {
      if (!isMissing(error)) changeMode(pollingFor(error));
    }
  }

  function changeMode(next: WatchMode): void {
    const same = next.by === mode.by;
    mode = next;
    if (!same) options.onMode?.(next);
  }

  function renew(): void {
    renewedAtMs = clock.monotonicMs();
    attach();
    look();
  }

  function settle(): void {
    cancelSettle ??= clock.after(SETTLE_MS, () => {
      cancelSettle = undefined;
      renew();
    });
  }

  /** Not on the event loop, since the file system may hang. */
  async function compare(): Promise<void> {
    const now = await identity(directory);
    if (hasEnded) return;
    if (now !== watched || clock.monotonicMs() - renewedAtMs >= pollMs) renew();
    compareLater();
  }

  function compareLater(): void {
    cancelCompare = clock.after(COMPARE_MS, () => void compare());
  }

  attach();
  compareLater();
  return () => {
    hasEnded = true;
    watcher?.close();
    cancelSettle?.();
    cancelCompare();
  };
}

function identity(directory: string): Promise<string> {
  return stat(directory).then(identityOf, unseen);
}

function identityNow(directory: string): string {
  try {
    return identityOf(statSync(directory));
  } catch (error) {
    return unseen(error);
  }
}

function identityOf({ dev, ino, ctimeMs }: Stats): string {
  return `${dev} ${ino} ${ctimeMs}`;
}

function unseen(error: unknown): string {
  return systemCodeOf(error) ?? 'unknown';
}

function pollingFor(error: unknown): WatchMode {
  return { by: 'polling', code: unseen(error) };
}

function isMissing(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR'].includes(unseen(error));
}
