/** Writes field blocks in all the ways that HPACK allows, as peers do, with a table of its own. */

import { ENTRY_OVERHEAD_BYTES } from '../../../../src/proxy/http2/hpack/dynamic-table.ts';
import { CODE_LENGTHS } from '../../../../src/proxy/http2/hpack/huffman.ts';
import {
  STATIC_ENTRIES,
  STATIC_NAMES,
  STATIC_VALUES,
} from '../../../../src/proxy/http2/hpack/static-table.ts';
import { DEFAULT_HEADER_TABLE_BYTES } from '../../../../src/proxy/http2/settings.ts';
import type { Random } from '../../http1/fuzz/random.ts';

const CODES = codesOf(CODE_LENGTHS);

/** How a block refers to what is known: to all that the peer's table has, or as an encoder without a table does. */
type References = 'table' | 'static';

/** A field, and whether it is never to be indexed; the writer chooses where that is not said. */
type WrittenField = readonly [name: string, value: string, never?: boolean];

type Entry = readonly [name: string, value: string];

export class BlockWriter {
  readonly #random: Random;
  /** The newest first. */
  readonly #table: Entry[] = [];
  #bytes = 0;
  #maxBytes = DEFAULT_HEADER_TABLE_BYTES;

  constructor(random: Random) {
    this.#random = random;
  }

  /** A table size update, which stands before the fields of a block. */
  resize(bytes: number): Buffer {
    this.#maxBytes = bytes;
    this.#evict();
    return integer(0x20, 5, bytes);
  }

  /** @param random gives the same octets for the same fields, as far as the table allows. */
  block(
    fields: readonly WrittenField[],
    random: Random = this.#random,
    references: References = 'table',
  ): Buffer {
    return Buffer.concat(fields.map((field) => this.#field(field, random, references)));
  }

  #field([name, value, never]: WrittenField, random: Random, references: References): Buffer {
    const chosen = {
      whole: random.chance(0.8),
      named: random.chance(0.8),
      added: random.chance(0.5),
      never: random.chance(0.5),
      codedName: random.chance(0.5),
      codedValue: random.chance(0.5),
    };
    const whole = this.#indexOf(references, (other, otherValue) => other === name && otherValue === value);
    if (whole > 0 && chosen.whole && never !== true) return integer(0x80, 7, whole);
    const named = chosen.named ? this.#indexOf(references, (other) => other === name) : 0;
    const added = chosen.added && never !== true;
    const start = added ? integer(0x40, 6, named) : integer((never ?? chosen.never) ? 0x10 : 0x00, 4, named);
    if (added) this.#add(name, value);
    const literalName = named > 0 ? [] : [string(name, chosen.codedName)];
    return Buffer.concat([start, ...literalName, string(value, chosen.codedValue)]);
  }

  #add(name: string, value: string): void {
    this.#table.unshift([name, value]);
    this.#bytes += entryBytes(name, value);
    this.#evict();
  }

  #evict(): void {
    while (this.#bytes > this.#maxBytes) {
      const [name, value] = this.#table.pop() as Entry;
      this.#bytes -= entryBytes(name, value);
    }
  }

  #indexOf(references: References, matches: (name: string, value: string) => boolean): number {
    for (let index = 1; index <= STATIC_ENTRIES; index++) {
      if (matches(STATIC_NAMES[index] as string, STATIC_VALUES[index] as string)) return index;
    }
    if (references === 'static') return 0;
    const entry = this.#table.findIndex(([name, value]) => matches(name, value));
    return entry === -1 ? 0 : STATIC_ENTRIES + 1 + entry;
  }
}

function entryBytes(name: string, value: string): number {
  return name.length + value.length + ENTRY_OVERHEAD_BYTES;
}

function string(text: string, coded: boolean): Buffer {
  const octets = coded ? huffman(text) : Buffer.from(text, 'latin1');
  return Buffer.concat([integer(coded ? 0x80 : 0, 7, octets.length), octets]);
}

export function integer(pattern: number, bits: number, value: number): Buffer {
  const prefix = 2 ** bits - 1;
  if (value < prefix) return Buffer.from([pattern | value]);
  const octets = [pattern | prefix];
  let rest = value - prefix;
  for (; rest >= 128; rest >>>= 7) octets.push((rest & 127) | 128);
  octets.push(rest);
  return Buffer.from(octets);
}

function huffman(text: string): Buffer {
  let bits = '';
  for (const octet of Buffer.from(text, 'latin1')) bits += CODES[octet];
  bits = bits.padEnd(Math.ceil(bits.length / 8) * 8, '1');
  return Buffer.from((bits.match(/.{8}/g) ?? []).map((octet) => Number.parseInt(octet, 2)));
}

function codesOf(lengths: readonly number[]): string[] {
  const codes: string[] = [];
  let code = 0n;
  let length = 0;
  const symbols = [...lengths.keys()].sort(
    (a, b) => (lengths[a] as number) - (lengths[b] as number) || a - b,
  );
  for (const symbol of symbols) {
    const bits = lengths[symbol] as number;
    code <<= BigInt(bits - length);
    length = bits;
    codes[symbol] = code.toString(2).padStart(bits, '0');
    code++;
  }
  return codes;
}
