import { type FSWatcher, type Stats, statSync, watch } from 'node:fs';
import { stat } from 'node:fs/promises';
import { systemCodeOf } from '../errors.ts';
import type { Clock } from '../time/clock.ts';

export interface DirectoryWatchOptions {
  readonly clock: Clock;
  /** Look at least this often, whatever the notifications say: they get lost on some file systems. */
  readonly pollMs: number;
  /** Called when changes are noticed in a different way than before; the first way is notification. */
  readonly onMode?: (mode: WatchMode) => void;
  /** The system's by default. */
  readonly watch?: typeof watch;
}

/** How changes are noticed: by notification, or by polling if the system gives no watch (`code` says why). */
export type WatchMode = { readonly by: 'notification' } | { readonly by: 'polling'; readonly code: string };

/** How long after a notification to look: the kubelet's swap causes several, and one look should see them all. */
const SETTLE_MS = 20;

/** How often to compare what is at the path with what is watched: a watch follows its directory, not the path. */
const COMPARE_MS = 500;

/**
 * Calls `look` soon after anything in `directory` changed, and every `pollMs`. The directory itself is watched, never
 * a file in it: a watched file goes silent with the kubelet's first swap. Another directory at the path (removed and
 * made again, moved there, mounted there, reached by another link) is noticed by comparing. `look` must find out itself
 * whether anything really changed.
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
    // Before the watch is set up: a change between the two is seen by the next comparison.
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

  /** Off the event loop, one at a time: the file system may hang. */
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

/** Which directory is at the path, and as of which change of its entries or its mode; or why none can be seen. */
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
