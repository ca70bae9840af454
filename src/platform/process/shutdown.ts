/** How a process ends: what asks it to, how it shares out the time it has, and what it leaves for the kubelet. */

import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { systemCodeOf } from '../errors.ts';
import type { Logger } from '../log/logger.ts';

/** SIGTERM, SIGINT or a request to quit: at the first, the command finishes its work and returns. */
export interface Shutdown {
  /** Aborts when the process is asked to end. A second signal ends it at once, without the command's help. */
  readonly signal: AbortSignal;
  /** Requests the end from inside, as `POST /quitquitquit` does. */
  request(): void;
  /**
   * From now on SIGHUP calls back instead of ending the process, unless the process runs on a terminal, where SIGHUP
   * means that the terminal is closed.
   */
  takeHangups(callback: () => void): void;
}

/**
 * Turns the first SIGTERM or SIGINT into an abort of the returned signal, and lets the second end the process at once.
 * Exit status 0 both times: a Job whose sidecar ends with 143 counts as failed. SIGHUP works like the first, unless a
 * command uses it otherwise, and never ends the process at once: a closing terminal sends several.
 */
export function listenForShutdown(process: NodeJS.Process): Shutdown {
  const abort = new AbortController();
  const onSignal = (): void => {
    if (abort.signal.aborted) process.exit(0);
    abort.abort();
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
  let onHangup = (): void => abort.abort();
  process.on('SIGHUP', () => onHangup());
  return {
    signal: abort.signal,
    request: () => abort.abort(),
    takeHangups(callback) {
      // On a terminal SIGHUP means that the terminal has gone.
      if (!process.stdin.isTTY) onHangup = callback;
    },
  };
}

/** Resolves when the signal aborts; at once if it has. */
export function whenAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** How a program shares out the time that it has to end. */
interface DrainShares {
  /** How long new connections are still accepted, while others learn that it ends. */
  readonly delayMs: number;
  /** At least this long for requests in flight, once no new ones are accepted. */
  readonly drainMs: number;
  /** For the last spans. */
  readonly spansMs: number;
}

/** The time that a drain leaves for spans: the requests it cut off are just those that somebody will look for. */
const KEPT_FOR_SPANS_MS = 1000;
/** At most this fraction of the whole time. */
const PART_FOR_SPANS = 0.2;

/** Fraction of the time that remains after spans. */
const PART_FOR_DRAIN = 0.2;

/** @param drainDelayMs how long new connections should be accepted; shortened if time is short. */
export function drainShares(
  drainTimeoutMs: number,
  { drainDelayMs, hasSpans }: { readonly drainDelayMs: number; readonly hasSpans: boolean },
): DrainShares {
  const spansMs = hasSpans ? Math.min(KEPT_FOR_SPANS_MS, drainTimeoutMs * PART_FOR_SPANS) : 0;
  const restMs = drainTimeoutMs - spansMs;
  const drainMs = restMs * PART_FOR_DRAIN;
  return { delayMs: Math.min(drainDelayMs, restMs - drainMs), drainMs, spansMs };
}

/**
 * The file from which the kubelet takes an ended container's message. Kubernetes mounts it here, even if the rest of the
 * file system is read-only.
 */
export const TERMINATION_LOG = '/dev/termination-log';

/** Of the 4096 bytes that the kubelet takes. */
const MAX_MESSAGE_LENGTH = 2048;

/** Only if the file already exists: elsewhere nobody reads it. Non-blocking, so that a pipe is not waited for. */
const FLAGS = constants.O_WRONLY | constants.O_TRUNC | constants.O_NONBLOCK;

/** Never rejects: the message is in the log as well. */
export async function leaveTerminationMessage(path: string, message: string, log?: Logger): Promise<void> {
  try {
    const file = await open(path, FLAGS);
    try {
      if ((await file.stat()).isFile()) await file.write(message.slice(0, MAX_MESSAGE_LENGTH));
    } finally {
      await file.close();
    }
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') log?.warn({ err: error, path }, 'no termination message left');
  }
}
