import { BlockPool } from '../io/block-pool.ts';

const BLOCK_BYTES = 16 * 1024;

/** Two megabytes: what 32 uploads of the default bound take. More at once take memory of their own. */
const SPARE_BLOCKS = 128;

/** A first piece up to here has memory of its own: as a rule it is all there is. */
const SMALL_BYTES = 4096;

const BLOCKS = new BlockPool(BLOCK_BYTES, SPARE_BLOCKS);

/**
 * The beginning of a request body, kept so that the request can be sent again. Once more than `maxBytes` have
 * passed, nothing is kept and it says so: memory does not grow with the body.
 */
export class ReplayBuffer {
  readonly #maxBytes: number;
  /** All but the last are full. */
  #blocks: Buffer[] = [];
  /** Up to where the last block is filled. */
  #end = 0;
  #length = 0;
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
    const last = this.#blocks.length - 1;
    return this.#blocks.map((block, at) => (at === last ? block.subarray(0, this.#end) : block));
  }

  /** Keeps a copy. */
  add(slice: Buffer): void {
    if (!this.#whole || slice.length === 0) return;
    this.#length += slice.length;
    if (this.#length > this.#maxBytes) {
      this.release();
      return;
    }
    for (let from = 0; from < slice.length; ) {
      const last = this.#blocks.at(-1);
      if (last === undefined || this.#end === last.length) {
        this.#blocks.push(this.#nextBlock(slice.length - from));
        this.#end = 0;
        continue;
      }
      const copied = slice.copy(last, this.#end, from);
      this.#end += copied;
      from += copied;
    }
  }

  /** Lets go of what was kept; from here on the body cannot be sent again. */
  release(): void {
    this.#whole = false;
    for (const block of this.#blocks) if (block.length === BLOCK_BYTES) BLOCKS.giveBack(block);
    this.#blocks = [];
    this.#end = 0;
  }

  #nextBlock(bytes: number): Buffer {
    if (this.#blocks.length === 0 && bytes <= SMALL_BYTES) return Buffer.allocUnsafe(bytes);
    return BLOCKS.take();
  }
}
