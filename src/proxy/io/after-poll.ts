/**
 * Calls back after the next poll of the sockets: the event loop polls them between any two immediates. A process that
 * was stopped or busy thus learns first what it missed.
 */
export function afterPoll(callback: () => void): void {
  setImmediate(() => setImmediate(callback));
}
