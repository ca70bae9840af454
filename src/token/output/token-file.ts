/** A credential's token as a file: always whole, and absent if no token may be sent. */

import { constants } from 'node:fs';
import { open, rename, statfs, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { TokenFileConfig } from '../../config/config.ts';
import { messageOf, SidecarError, systemCodeOf } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log/logger.ts';
import { Gauge, type Registry } from '../../platform/prometheus.ts';
import { type Clock, remainingMs } from '../../platform/time/clock.ts';
import type { GivenToken, TokenSource } from '../token-source.ts';

interface TokenFileOptions {
  readonly config: TokenFileConfig;
  readonly source: Pick<TokenSource, 'name' | 'held' | 'onToken'>;
  readonly clock: Clock;
  readonly metrics: TokenFileMetrics;
  readonly log: Logger;
}

export interface TokenFileTrouble {
  readonly credential: string;
  readonly path: string;
  readonly code: string | undefined;
  readonly sinceMs: number;
}

interface TokenFile {
  /** Undefined if there is none. */
  trouble(): TokenFileTrouble | undefined;
  /** This source's token replaces the one before in one step. */
  follow(source: TokenFileOptions['source']): void;
  /** Removes the file. Never rejects. */
  close(): Promise<void>;
}

/** The wait after a failure. */
const AGAIN_MS = 5000;

/** A suspended machine's timers stand still while the token grows old. */
const MAX_SLEEP_MS = 15_000;

/** Types by `statfs`: tmpfs and ramfs. */
const IN_MEMORY: ReadonlySet<number> = new Set([0x01021994, 0x858458f6]);

/**
 * Removes what an earlier start has left, of unknown expiry.
 * @throws {SidecarError} `configuration` if the file cannot be made.
 */
export async function openTokenFile(options: TokenFileOptions): Promise<TokenFile> {
  const { config, clock, metrics, log } = options;
  let { source } = options;
  const { path } = config;
  const about = { credential: source.name, path };
  let written: GivenToken | undefined;
  let trouble: TokenFileTrouble | undefined;
  let cancelLook: (() => void) | undefined;
  let closed = false;
  let syncing: Promise<void> | undefined;
  let isOutdated = false;

  /** Brings the file up to date, once more if called meanwhile. */
  function sync(): Promise<void> {
    isOutdated = true;
    syncing ??= syncUntilSettled().finally(() => {
      syncing = undefined;
    });
    return syncing;
  }

  async function syncUntilSettled(): Promise<void> {
    while (isOutdated) {
      isOutdated = false;
      cancelLook?.();
      const held = closed ? undefined : source.held();
      const hadEnded = leftMs() === 0;
      trouble = await bringTo(held);
      const isCurrent = trouble === undefined;
      metrics.written(about.credential, isCurrent);
      // A failed removal waits, unless the token ended during the attempt.
      const nextMs = isCurrent ? MAX_SLEEP_MS : AGAIN_MS;
      const lookMs = hadEnded && !isCurrent ? AGAIN_MS : Math.min(leftMs(), nextMs);
      if (!closed) cancelLook = clock.after(lookMs, () => void sync());
    }
  }

  function leftMs(): number {
    return written === undefined ? Number.POSITIVE_INFINITY : remainingMs(written.sendableUntil, clock.now());
  }

  /** Returns what went wrong. */
  async function bringTo(held: GivenToken | undefined): Promise<TokenFileTrouble | undefined> {
    try {
      if (held === undefined) {
        if (written !== undefined || trouble !== undefined) await clear();
      } else if (held.token !== written?.token) {
        // Before the successor is tried, which may fail, and needs the room on a full volume.
        if (leftMs() === 0) await clear();
        await replace(config, held.token);
      }
      written = held;
      return undefined;
    } catch (error) {
      const code = systemCodeOf(error);
      log.warn({ ...about, code }, 'the file of the token could not be brought up to date');
      return { ...about, code, sinceMs: trouble?.sinceMs ?? clock.now().wallMs };
    }
  }

  /** Tries both files even if one cannot be removed. */
  async function clear(): Promise<void> {
    try {
      await remove(path);
      written = undefined;
    } finally {
      await remove(incomingOf(path));
    }
  }

  try {
    // Tries both operations, with an empty file.
    await replace(config, '');
    await clear();
    const { type } = await statfs(dirname(path));
    if (!IN_MEMORY.has(type))
      log.warn(about, 'the token is written to a disk: mount a volume of memory there');
  } catch (error) {
    const why = systemCodeOf(error) ?? messageOf(error);
    throw new SidecarError(
      'configuration',
      `credential ${source.name}: output.file ${path}: expected a file in a directory that can be written, with its mode and group (${why})`,
      { cause: error },
    );
  }
  let unfollow = source.onToken(() => void sync());
  await sync();
  return {
    trouble: () => trouble,
    follow(next) {
      if (next === source) return;
      unfollow();
      source = next;
      unfollow = source.onToken(() => void sync());
      void sync();
    },
    async close() {
      closed = true;
      unfollow();
      await sync();
    },
  };
}

/** Readers see a whole file. A failure leaves nothing of the new one. */
async function replace({ path, mode, group }: TokenFileConfig, content: string): Promise<void> {
  const incoming = incomingOf(path);
  // Left by a start that was killed.
  await remove(incoming);
  const { O_CREAT, O_EXCL, O_WRONLY, O_NOFOLLOW } = constants;
  const file = await open(incoming, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW, 0o600);
  try {
    try {
      if (group !== undefined) await file.chown((await file.stat()).uid, group);
      await file.chmod(mode);
      await file.writeFile(content);
    } finally {
      await file.close();
    }
    await rename(incoming, path);
  } catch (error) {
    await remove(incoming);
    throw error;
  }
}

function incomingOf(path: string): string {
  return join(dirname(path), `.${basename(path)}.incoming`);
}

async function remove(path: string): Promise<void> {
  try {
    await unlink(path);
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') throw error;
  }
}

interface TokenFileMetrics {
  /** @param isCurrent whether the file has the held token, or is absent without one. */
  written(credential: string, isCurrent: boolean): void;
}

export function createTokenFileMetrics(registry: Registry): TokenFileMetrics {
  const current = new Gauge({
    name: 'token_sidecar_token_file_current',
    help: "1 while the token's file holds the token in use, or is absent because there is none; 0 while it could not be written or removed.",
    labelNames: ['credential'],
    registers: [registry],
  });
  return {
    written: (credential, isCurrent) => current.set({ credential }, isCurrent ? 1 : 0),
  };
}
