import type { Socket } from 'node:net';

/** What a socket reveals about what waits in it. */
type Waits = Pick<Socket, 'writableLength' | 'bytesWritten'>;

/**
 * Watches what waits in a socket for the system to take it. A socket does not report when some of it was taken: only
 * looking shows it.
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

  /** Looks, and tells for how long, in ms, the system has been seen to take nothing though something waited. */
  stuckMs(nowMs: number): number {
    if (!this.anyWaits) {
      this.#waits = undefined;
      return 0;
    }
    const takenBytes = this.#socket.bytesWritten - this.#socket.writableLength;
    if (this.#waits?.takenBytes !== takenBytes) this.#waits = { sinceMs: nowMs, takenBytes };
    return nowMs - this.#waits.sinceMs;
  }

  /** Whether something waited at the last look, so that another is needed. */
  get watches(): boolean {
    return this.#waits !== undefined;
  }
}
