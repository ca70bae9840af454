/** Writes field blocks in all the ways that HPACK allows, as peers do, with a table of its own. */

import { CODE_LENGTHS } from '../../../../src/proxy/http2/hpack/huffman.ts';
import {
  STATIC_ENTRIES,
  STATIC_NAMES,
  STATIC_VALUES,
} from '../../../../src/proxy/http2/hpack/static-table.ts';
import type { Random } from '../../http1/fuzz/random.ts';

const CODES = codesOf(CODE_LENGTHS);

export class BlockWriter {
  readonly #random: Random;
  /** The newest first. Cases are too small for entries to be evicted. */
  readonly #table: (readonly [name: string, value: string])[] = [];

  constructor(random: Random) {
    this.#random = random;
  }

  block(fields: readonly (readonly [string, string])[]): Buffer {
    return Buffer.concat(fields.map(([name, value]) => this.#field(name, value)));
  }

  #field(name: string, value: string): Buffer {
    const whole = this.#indexOf((other, otherValue) => other === name && otherValue === value);
    if (whole > 0 && this.#random.chance(0.8)) return integer(0x80, 7, whole);
    const named = this.#random.chance(0.8) ? this.#indexOf((other) => other === name) : 0;
    const indexed = this.#random.chance(0.5);
    if (indexed) this.#table.unshift([name, value]);
    const start = indexed ? integer(0x40, 6, named) : integer(this.#random.pick([0x00, 0x10]), 4, named);
    return Buffer.concat([start, ...(named > 0 ? [] : [this.#string(name)]), this.#string(value)]);
  }

  #indexOf(matches: (name: string, value: string) => boolean): number {
    for (let index = 1; index <= STATIC_ENTRIES; index++) {
      if (matches(STATIC_NAMES[index] as string, STATIC_VALUES[index] as string)) return index;
    }
    const entry = this.#table.findIndex(([name, value]) => matches(name, value));
    return entry === -1 ? 0 : STATIC_ENTRIES + 1 + entry;
  }

  #string(text: string): Buffer {
    const coded = this.#random.chance(0.5);
    const octets = coded ? huffman(text) : Buffer.from(text, 'latin1');
    return Buffer.concat([integer(coded ? 0x80 : 0, 7, octets.length), octets]);
  }
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
