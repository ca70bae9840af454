/**
 * Calls back once the sockets have been asked for what had come when this was called: the event loop polls them between
 * any two immediates. A process that was stopped or busy learns in that time what it missed.
 */
export function afterPoll(callback: () => void): void {
  setImmediate(() => setImmediate(callback));
}
