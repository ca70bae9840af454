/**
 * RFC 7541 §3, §6. Each direction has one, which must get every block, whole and in order. After `too_large`
 * the connection can go on.
 */

import { type ConnectionFault, connectionFault, type FaultReason } from '../errors.ts';
import type { Fields } from '../fields.ts';
import { DEFAULT_HEADER_TABLE_BYTES } from '../settings.ts';
import { DynamicTable, ENTRY_OVERHEAD_BYTES } from './dynamic-table.ts';
import { decodeHuffman } from './huffman.ts';
import { type DecodedFields, type KnownBlocks, keyOfBlock } from './known-blocks.ts';
import { STATIC_ENTRIES, STATIC_NAMES, STATIC_VALUES } from './static-table.ts';

export interface FieldSectionLimits {
  /** As SETTINGS_MAX_HEADER_LIST_SIZE counts them. */
  readonly sectionBytes: number;
  readonly sectionFields: number;
}

export interface TooLarge {
  readonly kind: 'too_large';
  /** The fields before the first that is too much. */
  readonly fields: Fields;
}

const NONE: readonly string[] = [];

/** Four octets hold 2^28, more than any block has. */
const MAX_INTEGER_OCTETS = 4;

export class HpackDecoder {
  readonly #limits: FieldSectionLimits;
  readonly #table = new DynamicTable(DEFAULT_HEADER_TABLE_BYTES);
  #limitBytes = DEFAULT_HEADER_TABLE_BYTES;
  /** The next block has to begin with a table size update. */
  #updateDue = false;
  #at = 0;
  #fault: FaultReason = 'hpack_truncated';
  /** These two are about the present block. */
  #refers = false;
  #additions: readonly string[] = NONE;
  readonly #known: KnownBlocks | undefined;

  /** @param known without it, each block is read. */
  constructor(limits: FieldSectionLimits, known?: KnownBlocks) {
    this.#limits = limits;
    this.#known = known;
  }

  /** While it is unchanged, a block that changed nothing means the same. */
  get tableVersion(): number {
    return this.#table.version;
  }

  /** The peer has acknowledged the setting (§4.2). */
  setLimit(bytes: number): void {
    this.#limitBytes = bytes;
    this.#updateDue = this.#table.maxBytes > bytes;
  }

  /** The decoder is useless after a fault. */
  decode(block: Buffer): DecodedFields | TooLarge | ConnectionFault {
    const blocks = this.#known;
    const key = keyOfBlock(block);
    if (blocks === undefined || key === undefined || this.#updateDue) return this.#decode(block);
    const table = this.#table;
    const known = blocks.get(key, table.version);
    if (known !== undefined) {
      const { decoded, additions } = known;
      for (let at = 0; at < additions.length; at += 2) {
        table.add(additions[at] as string, additions[at + 1] as string);
      }
      return decoded;
    }

    const { version } = table;
    const decoded = this.#decode(block);
    const additions = this.#additions;
    // Otherwise the block changes more than it adds.
    const addsOnly = table.version === version + additions.length / 2;
    if (decoded.kind === 'fields' && addsOnly && !(this.#refers && additions.length > 0)) {
      blocks.keep(key, { decoded, additions, refersTo: this.#refers ? version : undefined });
    }
    return decoded;
  }

  #decode(block: Buffer): DecodedFields | TooLarge | ConnectionFault {
    const table = this.#table;
    const fields: string[] = [];
    let neverIndexed = NONE as string[];
    let bytesLeft = this.#limits.sectionBytes;
    let fieldsLeft = this.#limits.sectionFields;
    let additions = NONE as string[];
    this.#at = 0;
    this.#refers = false;
    if (!this.#readSizeUpdates(block)) return connectionFault(this.#fault);

    while (this.#at < block.length) {
      const octet = block[this.#at] as number;
      let name: string;
      let value: string;
      if (octet >= 0x80) {
        const index = this.#integer(block, 0x7f);
        if (index <= 0) return connectionFault(index === 0 ? 'hpack_index' : this.#fault);
        if (index <= STATIC_ENTRIES) {
          name = STATIC_NAMES[index] as string;
          value = STATIC_VALUES[index] as string;
        } else {
          const entry = index - STATIC_ENTRIES - 1;
          if (entry >= table.entries) return connectionFault('hpack_index');
          this.#refers = true;
          name = table.name(entry);
          value = table.value(entry);
        }
      } else {
        const indexed = octet >= 0x40;
        if (!indexed && octet >= 0x20) return connectionFault('hpack_table_size');
        const literalName = this.#name(block, indexed ? 0x3f : 0x0f);
        if (literalName === undefined) return connectionFault(this.#fault);
        const literalValue = this.#string(block);
        if (literalValue === undefined) return connectionFault(this.#fault);
        name = literalName;
        value = literalValue;
        if (indexed) {
          table.add(name, value);
          if (additions === NONE) additions = [];
          additions.push(name, value);
        } else if (octet >= 0x10) {
          if (neverIndexed === NONE) neverIndexed = [];
          neverIndexed.push(name);
        }
      }
      bytesLeft -= name.length + value.length + ENTRY_OVERHEAD_BYTES;
      fieldsLeft--;
      // Decoded all the same, to keep the table in step.
      if (bytesLeft >= 0 && fieldsLeft >= 0) fields.push(name, value);
    }
    if (bytesLeft < 0 || fieldsLeft < 0) return { kind: 'too_large', fields };
    this.#additions = additions;
    return { kind: 'fields', fields, neverIndexed };
  }

  /** Allowed only at the beginning of a block (§4.2). */
  #readSizeUpdates(block: Buffer): boolean {
    while (this.#at < block.length && ((block[this.#at] as number) & 0xe0) === 0x20) {
      const bytes = this.#integer(block, 0x1f);
      if (bytes === -1) return false;
      if (bytes > this.#limitBytes) return this.#fail('hpack_table_size');
      this.#updateDue = false;
      this.#table.resize(bytes);
    }
    return !this.#updateDue || this.#fail('hpack_table_size');
  }

  #name(block: Buffer, prefix: number): string | undefined {
    const index = this.#integer(block, prefix);
    if (index === 0) return this.#string(block);
    if (index === -1) return undefined;
    if (index <= STATIC_ENTRIES) return STATIC_NAMES[index];
    const entry = index - STATIC_ENTRIES - 1;
    if (entry < this.#table.entries) {
      this.#refers = true;
      return this.#table.name(entry);
    }
    this.#fault = 'hpack_index';
    return undefined;
  }

  #string(block: Buffer): string | undefined {
    const coded = ((block[this.#at] as number) & 0x80) !== 0;
    const length = this.#integer(block, 0x7f);
    if (length === -1) return undefined;
    const start = this.#at;
    const end = start + length;
    if (end > block.length) {
      this.#fault = 'hpack_truncated';
      return undefined;
    }
    this.#at = end;
    if (!coded) return block.toString('latin1', start, end);
    this.#fault = 'hpack_huffman';
    return decodeHuffman(block, start, end);
  }

  /** Its prefix has the bits of `prefix` (§5.1); −1 is a fault. */
  #integer(block: Buffer, prefix: number): number {
    if (this.#at >= block.length) return this.#failedNumber('hpack_truncated');
    let value = (block[this.#at++] as number) & prefix;
    if (value < prefix) return value;
    for (let octets = 0; octets < MAX_INTEGER_OCTETS; octets++) {
      if (this.#at >= block.length) return this.#failedNumber('hpack_truncated');
      const octet = block[this.#at++] as number;
      value += (octet & 0x7f) << (octets * 7);
      if (octet < 0x80) return value;
    }
    return this.#failedNumber('hpack_integer');
  }

  #failedNumber(fault: FaultReason): -1 {
    this.#fault = fault;
    return -1;
  }

  #fail(fault: FaultReason): false {
    this.#fault = fault;
    return false;
  }
}
