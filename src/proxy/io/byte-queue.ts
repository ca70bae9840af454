import { BlockPool } from './block-pool.ts';

const BLOCK_BYTES = 16 * 1024;

/** Three megabytes: what 48 bodies of 64 KB take. More at once take memory of their own. */
const SPARE_BLOCKS = 192;

const BLOCKS = new BlockPool(BLOCK_BYTES, SPARE_BLOCKS);

/** A first piece up to here has memory of its own: as a rule it is all there is. */
const SMALL_BYTES = 4096;

/**
 * Octets that wait, in order. What is added is copied, into blocks that are used again: large bodies that wait a moment would
 * have V8 collect its heap all the time.
 */
export class ByteQueue {
  #blocks: Buffer[] = [];
  /** Where the first block begins. */
  #start = 0;
  /** Up to where the last block is filled. */
  #end = 0;
  #length = 0;
  /** The first block, while somebody reads it. */
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

  /** What waits, as it lies: it is there until it is taken. */
  pieces(): Buffer[] {
    const last = this.#blocks.length - 1;
    return this.#blocks.map((block, at) =>
      block.subarray(at === 0 ? this.#start : 0, at === last ? this.#end : block.length),
    );
  }

  /** Takes as many octets as lie together, `most` at most, and has them read: they are there until `read` returns. */
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

  /** One that is being read, by whom what it brought about has led here, is left to the collector. */
  #letGo(block: Buffer): void {
    if (block !== this.#lent && block.length === BLOCK_BYTES) BLOCKS.giveBack(block);
  }
}
