/** How a process ends, and what it leaves for the kubelet. */

import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { systemCodeOf } from '../errors.ts';
import type { Logger } from '../log/logger.ts';

export interface Shutdown {
  /** Aborts when the process is asked to end. A second signal ends it at once. */
  readonly signal: AbortSignal;
  /** For `POST /quitquitquit`. */
  request(): void;
  /** SIGHUP calls back instead of ending the process, except on a terminal, which it says is closed. */
  takeHangups(callback: () => void): void;
}

/**
 * SIGTERM and SIGINT abort, the second time they end the process at once. The exit status is 0: a Job whose sidecar
 * ends with 143 counts as failed. A closing terminal sends several SIGHUPs, which only abort.
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
      if (!process.stdin.isTTY) onHangup = callback;
    },
  };
}

export function whenAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

interface DrainShares {
  /** How long new connections are accepted. */
  readonly delayMs: number;
  /** The least time for requests in flight. */
  readonly drainMs: number;
  readonly spansMs: number;
}

/** Left for the spans of requests that the drain cut off. */
const KEPT_FOR_SPANS_MS = 1000;
/** Of the whole time. */
const PART_FOR_SPANS = 0.2;

/** Of the time without spans. */
const PART_FOR_DRAIN = 0.2;

/** @param drainDelayMs shortened if time is short. */
export function drainShares(
  drainTimeoutMs: number,
  { drainDelayMs, hasSpans }: { readonly drainDelayMs: number; readonly hasSpans: boolean },
): DrainShares {
  const spansMs = hasSpans ? Math.min(KEPT_FOR_SPANS_MS, drainTimeoutMs * PART_FOR_SPANS) : 0;
  const restMs = drainTimeoutMs - spansMs;
  const drainMs = restMs * PART_FOR_DRAIN;
  return { delayMs: Math.min(drainDelayMs, restMs - drainMs), drainMs, spansMs };
}

/** The kubelet reads it. Writable even on a read-only file system. */
export const TERMINATION_LOG = '/dev/termination-log';

/** The kubelet takes 4096 bytes. */
const MAX_MESSAGE_LENGTH = 2048;

/** Nobody reads it unless it exists. Non-blocking, so that a pipe is not waited for. */
const FLAGS = constants.O_WRONLY | constants.O_TRUNC | constants.O_NONBLOCK;

/** Never rejects. */
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
