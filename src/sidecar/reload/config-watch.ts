import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { readConfigText } from '../../platform/files/bounded-file.ts';
import { type DirectoryWatchOptions, watchDirectory } from '../../platform/mounted/directory-watch.ts';

/** A file unchanged for this long counts as complete: editors and `cp` write in pieces. */
const STILL_MS = 250;

export interface ConfigWatchOptions extends DirectoryWatchOptions {
  /** When the file was last read. */
  readonly read: string | undefined;
  /** The text differs, and has been stable for `STILL_MS`; undefined if it cannot be read. */
  readonly onChange: (text: string | undefined) => void;
}

/**
 * Watches and polls. The directory is watched, since a ConfigMap is swapped by a link.
 * @returns a function that stops it.
 */
export function watchConfigFile(
  path: string,
  { read, onChange, ...options }: ConfigWatchOptions,
): () => void {
  const { clock } = options;
  let known = fingerprintOf(read);
  /** When different text was first seen. */
  let found: { readonly fingerprint: string; readonly sinceMs: number } | undefined;
  let judged: string | undefined;
  let cancelNext: (() => void) | undefined;
  let looking = false;
  let lookAgain = false;
  let closed = false;

  async function look(): Promise<void> {
    lookAgain = true;
    if (looking) return;
    looking = true;
    while (lookAgain && !closed) {
      lookAgain = false;
      const version = await versionOf(path);
      // Something else changed in the directory.
      if (version === judged && found === undefined) continue;
      judged = version;
      judge(await readConfigText(path).catch(() => undefined));
    }
    looking = false;
  }

  function judge(text: string | undefined): void {
    cancelNext?.();
    if (closed) return;
    const fingerprint = fingerprintOf(text);
    if (fingerprint === known) {
      found = undefined;
      return;
    }
    const nowMs = clock.monotonicMs();
    if (found?.fingerprint !== fingerprint) found = { fingerprint, sinceMs: nowMs };
    const leftMs = found.sinceMs + STILL_MS - nowMs;
    if (leftMs > 0) {
      cancelNext = clock.after(leftMs, () => void look());
      return;
    }
    known = fingerprint;
    found = undefined;
    onChange(text);
  }

  const unwatch = watchDirectory(dirname(path), options, () => void look());
  void look();
  return () => {
    closed = true;
    cancelNext?.();
    unwatch();
  };
}

/** Includes the change time, which only the system sets. */
async function versionOf(path: string): Promise<string | undefined> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(' ');
  } catch {
    // Reading it reports the error.
    return undefined;
  }
}

/** Kept instead of the text, which may hold old secrets. */
function fingerprintOf(text: string | undefined): string {
  return text === undefined ? '' : createHash('sha256').update(text).digest('base64');
}
