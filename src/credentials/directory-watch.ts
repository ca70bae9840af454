import { type FSWatcher, watch } from 'node:fs';
import type { Clock } from '../clock.ts';

export interface DirectoryWatchOptions {
  readonly clock: Clock;
  /** Look at least this often, whatever the notifications say: they get lost on some file systems. */
  readonly pollMs: number;
}

/** How long after a notification to look: the kubelet's swap is several, and one look should see them all. */
const SETTLE_MS = 20;

/**
 * Calls `look` soon after anything in `directory` changed, and every `pollMs`. The directory itself is watched, never
 * a file in it: a watched file goes silent with the kubelet's first swap. The directory may be missing and appear later.
 * `look` must find out itself whether anything really changed.
 * @returns a function that ends the watch.
 */
export function watchDirectory(
  directory: string,
  options: DirectoryWatchOptions,
  look: () => void,
): () => void {
  let watcher: FSWatcher | undefined;
  let cancelSettle: (() => void) | undefined;
  let cancelPoll: () => void;

  function attach(): void {
    if (watcher !== undefined) return;
    try {
      watcher = watch(directory, { persistent: false }, settle);
      // The directory was removed, or the system has no watches left: the poll goes on and attaches again.
      watcher.on('error', detach);
    } catch {
      watcher = undefined;
    }
  }

  function detach(): void {
    watcher?.close();
    watcher = undefined;
  }

  function settle(): void {
    cancelSettle ??= options.clock.after(SETTLE_MS, () => {
      cancelSettle = undefined;
      look();
    });
  }

  function poll(): void {
    // A directory that was deleted and made again leaves a watch on the dead one: attach anew each time.
    detach();
    attach();
    look();
    cancelPoll = options.clock.after(options.pollMs, poll);
  }

  attach();
  cancelPoll = options.clock.after(options.pollMs, poll);
  return () => {
    detach();
    cancelSettle?.();
    cancelPoll();
  };
}
