/** An entry counts this beside its octets (RFC 7541 §4.1). */
export const ENTRY_OVERHEAD_BYTES = 32;

const FIRST_CAPACITY = 16;

/**
 * RFC 7541 §2.3.2, §4. The newest entry has index 0. Entries count as more than they take, so `maxBytes`
 * bounds memory.
 */
export class DynamicTable {
  /** While it is unchanged, blocks mean the same. */
  version = 0;

  /** Rings; their length is a power of two. */
  #names: string[] = new Array(FIRST_CAPACITY).fill('');
  #values: string[] = new Array(FIRST_CAPACITY).fill('');
  #newest = 0;
  #entries = 0;
  #bytes = 0;
  #maxBytes: number;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get maxBytes(): number {
    return this.#maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get entries(): number {
    return this.#entries;
  }

  /** @param index below `entries` */
  name(index: number): string {
    return this.#names[(this.#newest - index) & (this.#names.length - 1)] as string;
  }

  /** @param index below `entries` */
  value(index: number): string {
    return this.#values[(this.#newest - index) & (this.#values.length - 1)] as string;
  }

  /** An entry larger than the table leaves it empty (§4.4). */
  add(name: string, value: string): void {
    const bytes = name.length + value.length + ENTRY_OVERHEAD_BYTES;
    this.version++;
    this.#shrinkTo(this.#maxBytes - bytes);
    if (bytes > this.#maxBytes) return;
    if (this.#entries === this.#names.length) this.#enlarge();
    this.#newest = (this.#newest + 1) & (this.#names.length - 1);
    this.#names[this.#newest] = name;
    this.#values[this.#newest] = value;
    this.#entries++;
    this.#bytes += bytes;
  }

  /** RFC 7541 §4.3. */
  resize(maxBytes: number): void {
    this.version++;
    this.#maxBytes = maxBytes;
    this.#shrinkTo(maxBytes);
  }

  #shrinkTo(bytes: number): void {
    const mask = this.#names.length - 1;
    while (this.#entries > 0 && this.#bytes > bytes) {
      const oldest = (this.#newest - --this.#entries) & mask;
      this.#bytes -=
        (this.#names[oldest] as string).length +
        (this.#values[oldest] as string).length +
        ENTRY_OVERHEAD_BYTES;
      this.#names[oldest] = '';
      this.#values[oldest] = '';
    }
  }

  #enlarge(): void {
    const names: string[] = new Array(this.#names.length * 2).fill('');
    const values: string[] = new Array(this.#names.length * 2).fill('');
    for (let index = 0; index < this.#entries; index++) {
      const to = this.#entries - 1 - index;
      names[to] = this.name(index);
      values[to] = this.value(index);
    }
    this.#names = names;
    this.#values = values;
    this.#newest = this.#entries - 1;
  }
}
