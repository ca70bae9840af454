import type { Socket } from 'node:net';

/** What a socket tells of what waits in it. */
type Waits = Pick<Socket, 'writableLength' | 'bytesWritten'>;

/**
 * Watches what waits in a socket for the system to take it. A socket does not say when some of it was taken: that is seen
 * by looking, and no earlier.
 */
export class StuckSocket {
  readonly #socket: Waits;
  #waits: { readonly sinceMs: number; readonly takenBytes: number } | undefined;

  constructor(socket: Waits) {
    this.#socket = socket;
  }

  /** Whether something waits at this moment. */
  get anyWaits(): boolean {
    return this.#socket.writableLength > 0;
  }

  /** Looks: for how long, in ms, the system has been seen to take nothing though something waited. */
  stuckMs(nowMs: number): number {
    if (!this.anyWaits) {
      this.#waits = undefined;
      return 0;
    }
    const takenBytes = this.#socket.bytesWritten - this.#socket.writableLength;
    if (this.#waits?.takenBytes !== takenBytes) this.#waits = { sinceMs: nowMs, takenBytes };
    return nowMs - this.#waits.sinceMs;
  }

  /** Whether something waited when it was looked at last: it is to be looked at again. */
  get watches(): boolean {
    return this.#waits !== undefined;
  }
}
