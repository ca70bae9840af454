/** Reused, to leave nothing for the garbage collector. */
export class BlockPool {
  readonly #bytes: number;
  readonly #maxSpare: number;
  readonly #spare: Buffer[] = [];

  /** @param maxSpare how many are kept for later */
  constructor(bytes: number, maxSpare: number) {
    this.#bytes = bytes;
    this.#maxSpare = maxSpare;
  }

  /** Its content is unknown. Give it back. */
  take(): Buffer {
    return this.#spare.pop() ?? Buffer.allocUnsafeSlow(this.#bytes);
  }

  /** Nobody may use the buffer any more. */
  giveBack(block: Buffer): void {
    if (this.#spare.length < this.#maxSpare) this.#spare.push(block);
  }
}

const BLOCK_BYTES = 16 * 1024;

/** Three megabytes in all. */
const SPARE_BLOCKS = 192;

const BLOCKS = new BlockPool(BLOCK_BYTES, SPARE_BLOCKS);

/** Usually all there is: it gets memory of its own. */
const SMALL_BYTES = 4096;

/** Copies into reused blocks: fresh memory for large bodies would have V8 collect its heap all the time. */
export class ByteQueue {
  #blocks: Buffer[] = [];
  /** Where the first block's content begins. */
  #start = 0;
  /** Where the last block's content ends. */
  #end = 0;
  #length = 0;
  /** The first block, while it is read. */
  #lent: Buffer | undefined;

  get length(): number {
    return this.#length;
  }

  add(octets: Buffer): void {
    this.#length += octets.length;
    for (let from = 0; from < octets.length; ) {
      const last = this.#blocks.at(-1);
      if (last === undefined || this.#end === last.length) {
        const bytes = octets.length - from;
        const isAll = last === undefined && bytes <= SMALL_BYTES;
        this.#blocks.push(isAll ? Buffer.allocUnsafe(bytes) : BLOCKS.take());
        this.#end = 0;
        continue;
      }
      const copied = octets.copy(last, this.#end, from);
      this.#end += copied;
      from += copied;
    }
  }

  /** Pieces are not copied, and valid until taken. */
  pieces(): Buffer[] {
    const last = this.#blocks.length - 1;
    return this.#blocks.map((block, at) =>
      block.subarray(at === 0 ? this.#start : 0, at === last ? this.#end : block.length),
    );
  }

  /** The octets are contiguous, and valid until `read` returns. */
  take(most: number, read: (octets: Buffer) => void): void {
    const block = this.#blocks[0];
    if (block === undefined) return;
    const blockEnd = this.#blocks.length === 1 ? this.#end : block.length;
    const end = Math.min(blockEnd, this.#start + most);
    const octets = block.subarray(this.#start, end);
    this.#length -= octets.length;
    if (end === blockEnd) {
      this.#blocks.shift();
      this.#start = 0;
      try {
        read(octets);
      } finally {
        this.#letGo(block);
      }
      return;
    }
    this.#start = end;
    const outer = this.#lent;
    this.#lent = block;
    try {
      read(octets);
    } finally {
      this.#lent = outer;
    }
  }

  clear(): void {
    const blocks = this.#blocks;
    this.#blocks = [];
    this.#start = 0;
    this.#length = 0;
    for (const block of blocks) this.#letGo(block);
  }

  /** A nested `read` may still use the block: leave it to the collector. */
  #letGo(block: Buffer): void {
    if (block !== this.#lent && block.length === BLOCK_BYTES) BLOCKS.giveBack(block);
  }
}
