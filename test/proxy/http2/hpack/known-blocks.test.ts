import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isLasting } from '../../../../src/proxy/http/lasting-fields.ts';
import { HpackDecoder } from '../../../../src/proxy/http2/hpack/decoder.ts';
import { KnownBlocks } from '../../../../src/proxy/http2/hpack/known-blocks.ts';
import { volume } from '../../../support/volume.ts';
import { hex } from '../frames.ts';

const LIMITS = { sectionBytes: 65_536, sectionFields: 200 };

/** What every entry counts beside its octets (RFC 7541 §4.1). */
const ENTRY_OVERHEAD_BYTES = 32;
const STATIC_ENTRIES = 61;

/** On both sides of what is remembered: single fields of 256 octets, tables of 4096. */
const LONG_TEXTS = ['d'.repeat(120), 'e'.repeat(260), 'f'.repeat(1500)];

type Part =
  | { readonly kind: 'added' | 'plain' | 'never'; readonly name: string; readonly value: string }
  | { readonly kind: 'indexed'; readonly index: number }
  | { readonly kind: 'named'; readonly index: number; readonly value: string };

interface Block {
  /** A table size update at its beginning, in octets. */
  readonly size: number | undefined;
  readonly parts: readonly Part[];
}

/** Short ones above all. */
const text = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom('a', 'b', 'c') },
  { weight: 1, arbitrary: fc.constantFrom(...LONG_TEXTS) },
);
const part: fc.Arbitrary<Part> = fc.oneof(
  fc.record({ kind: fc.constantFrom('added', 'plain', 'never'), name: text, value: text }),
  fc.record({ kind: fc.constant('indexed'), index: fc.nat(2) }),
  fc.record({ kind: fc.constant('named'), index: fc.nat(2), value: text }),
);
const block: fc.Arbitrary<Block> = fc.record({
  size: fc.oneof(
    { weight: 6, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: fc.constantFrom(0, 34, 100, 600, 4096) },
  ),
  parts: fc.array(part, { minLength: 1, maxLength: 4 }),
});

const FIRST_OCTET = { added: '40', plain: '00', never: '10' };

function integer(pattern: number, prefix: number, value: number): string {
  if (value < prefix) return (pattern | value).toString(16).padStart(2, '0');
  let wire = (pattern | prefix).toString(16).padStart(2, '0');
  let rest = value - prefix;
  for (; rest >= 0x80; rest >>>= 7) wire += ((rest & 0x7f) | 0x80).toString(16);
  return wire + rest.toString(16).padStart(2, '0');
}

function string(value: string): string {
  return integer(0, 0x7f, value.length) + Buffer.from(value).toString('hex');
}

interface Table {
  list: readonly [string, string][];
  most: number;
}

/** The newest entries that a table of `most` octets holds. */
function fitting(list: readonly [string, string][], most: number): readonly [string, string][] {
  let bytes = 0;
  const end = list.findIndex(([name, value]) => {
    bytes += name.length + value.length + ENTRY_OVERHEAD_BYTES;
    return bytes > most;
  });
  return end === -1 ? list : list.slice(0, end);
}

/** A block on the wire and what it means by a table that is kept beside it; undefined where it refers to nothing. */
function write({ size, parts }: Block, table: Table): readonly [string, readonly string[]] | undefined {
  let wire = '';
  const fields: string[] = [];
  let { list, most } = table;
  if (size !== undefined) {
    wire += integer(0x20, 0x1f, size);
    most = size;
    list = fitting(list, most);
  }
  for (const one of parts) {
    if ('name' in one) {
      wire += FIRST_OCTET[one.kind] + string(one.name) + string(one.value);
      fields.push(one.name, one.value);
      if (one.kind === 'added') list = fitting([[one.name, one.value], ...list], most);
      continue;
    }
    const entry = list[one.index];
    if (entry === undefined) return undefined;
    const index = STATIC_ENTRIES + 1 + one.index;
    wire += one.kind === 'indexed' ? integer(0x80, 0x7f, index) : integer(0, 0x0f, index) + string(one.value);
    fields.push(entry[0], one.kind === 'indexed' ? entry[1] : one.value);
  }
  Object.assign(table, { list, most });
  return [wire, fields];
}

test('in long random sequences, a decoder that remembers blocks reads each like one that does not', () => {
  fc.assert(
    fc.property(
      fc.array(block, { minLength: 1, maxLength: 12 }),
      fc.array(fc.nat(11), { minLength: 1, maxLength: 250, size: 'max' }),
      (blocks, order) => {
        const remembering = new HpackDecoder(LIMITS, new KnownBlocks());
        const plain = new HpackDecoder(LIMITS);
        const table: Table = { list: [], most: 4096 };
        for (const index of order) {
          const written = write(blocks[index % blocks.length] as Block, table);
          if (written === undefined) continue;
          const [wire, fields] = written;
          const read = remembering.decode(hex(wire));
          expect(read).toMatchObject({ kind: 'fields', fields });
          expect(read).toEqual(plain.decode(hex(wire)));
        }
      },
    ),
    { numRuns: volume(100, 300) },
  );
});

test('a long block between two equal short ones does not change the fields of the short one', () => {
  const decoder = new HpackDecoder(LIMITS, new KnownBlocks());
  const short = hex(`40${string('a')}${string('b')}`);
  decoder.decode(short);
  decoder.decode(hex(`40${string('long')}${string('x'.repeat(300))}`));
  decoder.decode(short);
  // The newest entry is the short one's, and the one before it the long one's.
  expect(decoder.decode(hex(integer(0x80, 0x7f, 62)))).toMatchObject({ fields: ['a', 'b'] });
  expect(decoder.decode(hex(integer(0x80, 0x7f, 63)))).toMatchObject({ fields: ['long', 'x'.repeat(300)] });
  expect(decoder.decode(hex(integer(0x80, 0x7f, 64)))).toMatchObject({ fields: ['a', 'b'] });
});

test('the fields of a repeated block are the same array', () => {
  const decoder = new HpackDecoder(LIMITS, new KnownBlocks());
  const [first, second, third] = [1, 2, 3].map(() => decoder.decode(hex('82 40 0161 0162')));
  expect(second).toBe(first);
  expect(third).toBe(first);
  expect(isLasting(first?.kind === 'fields' ? first.fields : [])).toBe(true);
  const other = decoder.decode(hex('82'));
  expect(isLasting(other.kind === 'fields' ? other.fields : [])).toBe(false);
});

test('a few of many blocks are remembered, and no large one', () => {
  const decoder = new HpackDecoder(LIMITS, new KnownBlocks());
  const plain = (value: number) => hex(`00 0161 01 ${(0x30 + value).toString(16)}`);
  const before = decoder.decode(plain(0));
  for (let value = 1; value <= 8; value++) decoder.decode(plain(value));
  expect(decoder.decode(plain(0))).not.toBe(before);
  const large = Buffer.concat([hex('00 0161 7f a1 01'), Buffer.alloc(288, 'x')]);
  const one = decoder.decode(large);
  expect(one).toMatchObject({ kind: 'fields', fields: ['a', 'x'.repeat(288)] });
  expect(decoder.decode(large)).not.toBe(one);
});

test('a small block that expands to many fields is not remembered', () => {
  const decoder = new HpackDecoder(LIMITS, new KnownBlocks());
  const added = decoder.decode(Buffer.concat([hex('40 0161 7f a1 0f'), Buffer.alloc(2080, 'x')]));
  expect(added).toMatchObject({ kind: 'fields', fields: ['a', 'x'.repeat(2080)] });
  for (const [references, isKnown] of [
    ['be', true],
    ['be be', false],
  ] as const) {
    const one = decoder.decode(hex(references));
    expect(decoder.decode(hex(references)) === one).toBe(isKnown);
    expect(one).toMatchObject({ kind: 'fields' });
  }
});
