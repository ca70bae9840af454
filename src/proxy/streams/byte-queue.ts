/** Small pieces are gathered in blocks of this size: thousands of them must not become as many objects. */
const BLOCK_BYTES = 16 * 1024;

/** Octets that wait, in order. What is added is copied. */
export class ByteQueue {
  #blocks: Buffer[] = [];
  /** Where the first block begins. */
  #start = 0;
  /** Up to where the last block is filled. */
  #end = 0;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  add(octets: Buffer): void {
    if (octets.length === 0) return;
    this.#length += octets.length;
    const last = this.#blocks.at(-1);
    const fits = last === undefined ? 0 : Math.min(last.length - this.#end, octets.length);
    if (last !== undefined && fits > 0) {
      octets.copy(last, this.#end, 0, fits);
      this.#end += fits;
      if (fits === octets.length) return;
    }
    // What comes first is as a rule all there is.
    const rest = octets.length - fits;
    const block = Buffer.allocUnsafe(last === undefined ? rest : Math.max(rest, BLOCK_BYTES));
    octets.copy(block, 0, fits);
    this.#blocks.push(block);
    this.#end = rest;
  }

  /** What waits, as it lies: it is there for as long as it is used, and not taken. */
  pieces(): Buffer[] {
    const last = this.#blocks.length - 1;
    return this.#blocks.map((block, at) =>
      block.subarray(at === 0 ? this.#start : 0, at === last ? this.#end : block.length),
    );
  }

  /** As many octets as lie together at the front, not taken: none only where none wait. */
  first(): Buffer {
    const block = this.#blocks[0];
    if (block === undefined) return EMPTY;
    return block.subarray(this.#start, this.#blocks.length === 1 ? this.#end : block.length);
  }

  /** Takes as many octets as lie together, `most` at most; they are there for as long as they are used. */
  take(most: number): Buffer {
    const block = this.#blocks[0];
    if (block === undefined) return EMPTY;
    const blockEnd = this.#blocks.length === 1 ? this.#end : block.length;
    const end = Math.min(blockEnd, this.#start + most);
    const taken = block.subarray(this.#start, end);
    this.#length -= taken.length;
    this.#start = end;
    if (end === blockEnd) {
      this.#blocks.shift();
      this.#start = 0;
    }
    return taken;
  }

  clear(): void {
    this.#blocks = [];
    this.#start = 0;
    this.#length = 0;
  }
}

const EMPTY = Buffer.alloc(0);
