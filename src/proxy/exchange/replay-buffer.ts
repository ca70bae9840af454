import { ByteQueue } from '../io/byte-queue.ts';

/**
 * The beginning of a request body, kept so that the request can be sent again. Once more than `maxBytes` have
 * passed, nothing is kept and it says so: memory does not grow with the body.
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

  /** What is kept, as it lies: there until `release`. */
  get slices(): readonly Buffer[] {
    return this.#kept.pieces();
  }

  /** Keeps a copy. */
  add(slice: Buffer): void {
    if (!this.#whole) return;
    if (this.#kept.length + slice.length > this.#maxBytes) this.release();
    else this.#kept.add(slice);
  }

  /** Lets go of what was kept; from here on the body cannot be sent again. */
  release(): void {
    this.#whole = false;
    this.#kept.clear();
  }
}
