import { type FSWatcher, watch } from 'node:fs';
import { basename, dirname } from 'node:path';
import type { Clock } from '../clock.ts';
import { systemCodeOf } from '../errors.ts';

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

/**
 * Calls `look` soon after anything in `directory` changed, and every `pollMs`. The directory itself is watched, never
 * a file in it: a watched file goes silent with the kubelet's first swap. While the directory is missing, the nearest
 * one above it is watched for its coming. `look` must find out itself whether anything really changed.
 * @returns a function that ends the watch.
 */
export function watchDirectory(
  directory: string,
  options: DirectoryWatchOptions,
  look: () => void,
): () => void {
  const watchPath = options.watch ?? watch;
  let mode: WatchMode = { by: 'notification' };
  let watcher: FSWatcher | undefined;
  let cancelSettle: (() => void) | undefined;
  let cancelPoll: () => void;

  /** A watch follows the inode that it was made for, even when deleted or moved, so it is made anew for what is there now. */
  function attach(): void {
    watcher?.close();
    watcher = undefined;
    try {
      watcher = watchNearest(directory);
      watcher.on('error', (error) => changeMode(pollingFor(error)));
      changeMode({ by: 'notification' });
    } catch (error) {
      changeMode(pollingFor(error));
    }
  }

  /** @throws the errors of `fs.watch`, except for a path that does not exist. */
  function watchNearest(path: string): FSWatcher {
    try {
      return watchPath(path, { persistent: false }, settle);
    } catch (error) {
      if (!isMissing(error) || path === dirname(path)) throw error;
    }
    const parent = watchNearestParent(path);
    try {
      // The directory may have appeared while its parent's watch was set up.
      const itself = watchPath(path, { persistent: false }, settle);
      parent.close();
      return itself;
    } catch (error) {
      if (isMissing(error)) return parent;
      parent.close();
      throw error;
    }
  }

  /** In a directory above, only two things matter: the next directory down appears, or this one goes. */
  function watchNearestParent(path: string): FSWatcher {
    const parent = dirname(path);
    try {
      return watchPath(parent, { persistent: false }, (_event, name) => {
        if (name === null || name === basename(path) || name === basename(parent)) settle();
      });
    } catch (error) {
      if (!isMissing(error) || parent === dirname(parent)) throw error;
      return watchNearestParent(parent);
    }
  }

  function changeMode(next: WatchMode): void {
    const same = next.by === mode.by;
    mode = next;
    if (!same) options.onMode?.(next);
  }

  function settle(): void {
    cancelSettle ??= options.clock.after(SETTLE_MS, () => {
      cancelSettle = undefined;
      attach();
      look();
    });
  }

  function poll(): void {
    attach();
    look();
    cancelPoll = options.clock.after(options.pollMs, poll);
  }

  attach();
  cancelPoll = options.clock.after(options.pollMs, poll);
  return () => {
    watcher?.close();
    cancelSettle?.();
    cancelPoll();
  };
}

function pollingFor(error: unknown): WatchMode {
  return { by: 'polling', code: systemCodeOf(error) ?? 'unknown' };
}

function isMissing(error: unknown): boolean {
  const code = systemCodeOf(error);
  return code === 'ENOENT' || code === 'ENOTDIR';
}
