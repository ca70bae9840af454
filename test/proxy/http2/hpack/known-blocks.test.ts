import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isLasting } from '../../../../src/proxy/http/lasting-fields.ts';
import { HpackDecoder } from '../../../../src/proxy/http2/hpack/decoder.ts';
import { hex } from '../frames.ts';

const LIMITS = { sectionBytes: 65_536, sectionFields: 200 };

/** Entries of the model's table: names and values of one letter, 34 octets each (RFC 7541 §4.1). */
const ENTRY_BYTES = 34;
const STATIC_ENTRIES = 61;

type Part =
  | { readonly kind: 'added' | 'plain'; readonly name: string; readonly value: string }
  | { readonly kind: 'indexed'; readonly index: number }
  | { readonly kind: 'named'; readonly index: number; readonly value: string };

interface Block {
  /** A table size update at its beginning, in entries. */
  readonly entries: number | undefined;
  readonly parts: readonly Part[];
}

const letter = fc.constantFrom('a', 'b', 'c');
const part: fc.Arbitrary<Part> = fc.oneof(
  fc.record({ kind: fc.constantFrom('added', 'plain'), name: letter, value: letter }),
  fc.record({ kind: fc.constant('indexed'), index: fc.nat(2) }),
  fc.record({ kind: fc.constant('named'), index: fc.nat(2), value: letter }),
);
const block: fc.Arbitrary<Block> = fc.record({
  entries: fc.option(fc.nat(4), { nil: undefined, freq: 6 }),
  parts: fc.array(part, { minLength: 1, maxLength: 4 }),
});

function text(value: string): string {
  return `01${value.charCodeAt(0).toString(16)}`;
}

function integer(pattern: number, prefix: number, value: number): string {
  if (value < prefix) return (pattern | value).toString(16).padStart(2, '0');
  const rest = value - prefix;
  const low = (pattern | prefix).toString(16).padStart(2, '0');
  return rest < 0x80
    ? low + rest.toString(16).padStart(2, '0')
    : low + ((rest & 0x7f) | 0x80).toString(16) + (rest >> 7).toString(16).padStart(2, '0');
}

/** A block on the wire, what it means by a table that is kept beside it, or undefined where it refers to nothing. */
function write(
  { entries, parts }: Block,
  table: { list: [string, string][]; most: number },
): [string, string[]] | undefined {
  let wire = '';
  const fields: string[] = [];
  const after = { list: [...table.list], most: table.most };
  if (entries !== undefined) {
    wire += integer(0x20, 0x1f, entries * ENTRY_BYTES);
    after.most = entries;
    after.list = after.list.slice(0, entries);
  }
  for (const one of parts) {
    if ('name' in one) {
      wire += (one.kind === 'added' ? '40' : '00') + text(one.name) + text(one.value);
      fields.push(one.name, one.value);
      if (one.kind === 'added')
        after.list = [[one.name, one.value] as [string, string], ...after.list].slice(0, after.most);
      continue;
    }
    const entry = after.list[one.index];
    if (entry === undefined) return undefined;
    const index = STATIC_ENTRIES + 1 + one.index;
    if (one.kind === 'indexed') {
      wire += integer(0x80, 0x7f, index);
      fields.push(...entry);
    } else {
      wire += integer(0x00, 0x0f, index) + text(one.value);
      fields.push(entry[0], one.value);
    }
  }
  Object.assign(table, after);
  return [wire, fields];
}

test('a block that is known again means what it would mean to a decoder that knows none', () => {
  fc.assert(
    fc.property(
      fc.array(block, { minLength: 1, maxLength: 4 }),
      fc.array(fc.nat(3), { minLength: 1, maxLength: 40 }),
      (blocks, order) => {
        const decoder = new HpackDecoder(LIMITS);
        const table = { list: [] as [string, string][], most: Math.floor(4096 / ENTRY_BYTES) };
        for (const index of order) {
          const written = write(blocks[index % blocks.length] as Block, table);
          if (written === undefined) continue;
          expect(decoder.decode(hex(written[0]))).toMatchObject({ kind: 'fields', fields: written[1] });
        }
      },
    ),
    { numRuns: 400 },
  );
});

test('the fields of a block that came again are one array, and lasting', () => {
  const decoder = new HpackDecoder(LIMITS);
  const [first, second, third] = [1, 2, 3].map(() => decoder.decode(hex('82 40 0161 0162')));
  expect(second).toBe(first);
  expect(third).toBe(first);
  expect(isLasting(first?.kind === 'fields' ? first.fields : [])).toBe(true);
  const other = decoder.decode(hex('82'));
  expect(isLasting(other.kind === 'fields' ? other.fields : [])).toBe(false);
});

test('of many blocks a few are known, and none that is large', () => {
  const decoder = new HpackDecoder(LIMITS);
  const plain = (value: number) => hex(`00 0161 01 ${(0x30 + value).toString(16)}`);
  const before = decoder.decode(plain(0));
  for (let value = 1; value <= 8; value++) decoder.decode(plain(value));
  expect(decoder.decode(plain(0))).not.toBe(before);
  const large = Buffer.concat([hex('00 0161 7f a1 01'), Buffer.alloc(288, 'x')]);
  const one = decoder.decode(large);
  expect(one).toMatchObject({ kind: 'fields', fields: ['a', 'x'.repeat(288)] });
  expect(decoder.decode(large)).not.toBe(one);
});

test('a small block that says much by the table is not known', () => {
  const decoder = new HpackDecoder(LIMITS);
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
