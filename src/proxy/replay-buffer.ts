/**
 * The beginning of a request body, kept so that the request can be sent again. Once more than `maxBytes` have
 * passed, nothing is kept and it says so: memory does not grow with the body.
 */
export class ReplayBuffer {
  readonly #maxBytes: number;
  #chunks: Uint8Array[] = [];
  #bytes = 0;
  #whole = true;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Whether `chunks` is everything that was added. */
  get whole(): boolean {
    return this.#whole;
  }

  get chunks(): readonly Uint8Array[] {
    return this.#chunks;
  }

  /** Keeps the chunk itself, not a copy: the caller must not write into it any more. */
  add(chunk: Uint8Array): void {
    if (!this.#whole) return;
    this.#bytes += chunk.byteLength;
    if (this.#bytes > this.#maxBytes) this.release();
    else this.#chunks.push(chunk);
  }

  /** Lets go of what was kept; from here on the body cannot be sent again. */
  release(): void {
    this.#whole = false;
    this.#chunks = [];
  }
}
