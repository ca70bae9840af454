/** Resolves after `delayMs`, or as soon as `stop` aborts. */
export function pause(delayMs: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      stop.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, delayMs);
    stop.addEventListener('abort', done);
    if (stop.aborted) done();
  });
}
