import { ByteQueue } from '../io/byte-queue.ts';

/**
 * The beginning of a request body, kept for a retry. Once more than `maxBytes` have passed, it drops everything and is
 * no longer `whole`: memory does not grow with the body.
 */
export class ReplayBuffer {
  readonly #maxBytes: number;
  readonly #kept = new ByteQueue();
  #whole = true;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Whether `slices` is everything that was added. */
  get whole(): boolean {
    return this.#whole;
  }

  get heldBytes(): number {
    return this.#kept.length;
  }

  /** What is kept, uncopied; valid until `release`. */
  get slices(): readonly Buffer[] {
    return this.#kept.pieces();
  }

  /** Keeps a copy. */
  add(slice: Buffer): void {
    if (!this.#whole) return;
    if (this.#kept.length + slice.length > this.#maxBytes) this.release();
    else this.#kept.add(slice);
  }

  /** Drops what was kept; from here on the body cannot be sent again. */
  release(): void {
    this.#whole = false;
    this.#kept.clear();
  }
}
