import { MOST_UNREAD_BYTES } from './limits.ts';

/**
 * What has come on a connection and has not been read by the apps it is for. Up to a bound the connection's window is
 * given back as soon as something comes, so that an app that reads slowly stops its own answer alone, by the window of its
 * stream; beyond that bound not before something has left.
 */
export class UnreadBytes {
  readonly #giveBack: (bytes: number) => void;
  readonly #most: number;
  #unread = 0;
  #owed = 0;

  /** @param giveBack to the window of the connection. */
  constructor(giveBack: (bytes: number) => void, most = MOST_UNREAD_BYTES) {
    this.#giveBack = giveBack;
    this.#most = most;
  }

  came(bytes: number): void {
    this.#unread += bytes;
    this.#owed += bytes;
    this.#pay();
  }

  left(bytes: number): void {
    this.#unread -= bytes;
    this.#pay();
  }

  #pay(): void {
    if (this.#owed === 0 || this.#unread > this.#most) return;
    const bytes = this.#owed;
    this.#owed = 0;
    this.#giveBack(bytes);
  }
}
