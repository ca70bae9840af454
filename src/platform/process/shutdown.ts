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
