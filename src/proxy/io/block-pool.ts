/** Buffers of one size, used again and again: what passes through leaves nothing for the garbage collector. */
export class BlockPool {
  readonly #bytes: number;
  readonly #maxSpare: number;
  readonly #spare: Buffer[] = [];

  /**
   * @param bytes size of each
   * @param maxSpare how many are kept for later; more are made when they are needed at once
   */
  constructor(bytes: number, maxSpare: number) {
    this.#bytes = bytes;
    this.#maxSpare = maxSpare;
  }

  /** A buffer of unknown content, to be given back. */
  take(): Buffer {
    return this.#spare.pop() ?? Buffer.allocUnsafeSlow(this.#bytes);
  }

  /** Takes back a buffer, which nobody may read or write any more. */
  giveBack(block: Buffer): void {
    if (this.#spare.length < this.#maxSpare) this.#spare.push(block);
  }
}
