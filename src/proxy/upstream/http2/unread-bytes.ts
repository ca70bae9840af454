import { MOST_UNREAD_BYTES } from './limits.ts';

/**
 * What has come on a connection and has not been read by the apps it is for. Up to a bound the connection's window is
 * given back as soon as something comes, so that an app that reads slowly stops its own answer alone, by the window of its
 * stream; beyond that bound not before something has left, and no further request belongs on the connection meanwhile.
 */
export class UnreadBytes {
  readonly #giveBack: (bytes: number) => void;
  readonly #most: number;
  readonly #onRoom: () => void;
  #unread = 0;
  #owed = 0;

  /**
   * @param giveBack to the window of the connection.
   * @param onRoom is called when `isFull` is true no more.
   */
  constructor(giveBack: (bytes: number) => void, onRoom: () => void, most = MOST_UNREAD_BYTES) {
    this.#giveBack = giveBack;
    this.#onRoom = onRoom;
    this.#most = most;
  }

  /** Whether the window of the connection is given back no more until something has left. */
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
