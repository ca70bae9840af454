import type { Shutdown } from './command.ts';

/**
 * Turns the first SIGTERM or SIGINT into an abort of the returned signal, and lets the second end the process at
 * once. Exit status 0 both times: a Job whose sidecar ends with 143 counts as failed. SIGHUP asks like the first, unless a
 * command has another use for it, and never ends it at once: a terminal that closes sends several.
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
      // Of a program on a terminal it is the terminal that has gone.
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
