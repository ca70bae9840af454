import { MAX_UNREAD_BYTES } from './limits.ts';

/**
 * What has come on a connection and has not been read by its apps. Up to a bound the connection's window is given back
 * as soon as something comes, so that a slow app stops only its own answer, by its stream's window; beyond that bound
 * only once something has left, and meanwhile no further request belongs on the connection.
 */
export class UnreadBytes {
  readonly #giveBack: (bytes: number) => void;
  readonly #most: number;
  readonly #onRoom: () => void;
  #unread = 0;
  #owed = 0;

  /**
   * @param giveBack to the window of the connection.
   * @param onRoom is called when `isFull` is no longer true.
   */
  constructor(giveBack: (bytes: number) => void, onRoom: () => void, most = MAX_UNREAD_BYTES) {
    this.#giveBack = giveBack;
    this.#onRoom = onRoom;
    this.#most = most;
  }

  /** Whether the connection's window is not given back until something has left. */
  get isFull(): boolean {
    return this.#unread > this.#most;
  }

  came(bytes: number): void {
    this.#unread += bytes;
    this.#owed += bytes;
    this.#pay();
  }

  left(bytes: number): void {
    const wasFull = this.isFull;
    this.#unread -= bytes;
    this.#pay();
    if (wasFull && !this.isFull) this.#onRoom();
  }

  #pay(): void {
    if (this.#owed === 0 || this.isFull) return;
    const bytes = this.#owed;
    this.#owed = 0;
    this.#giveBack(bytes);
  }
}
