import { describe, expect, test } from 'vitest';
import { HpackDecoder } from '../../../../src/proxy/http2/hpack/decoder.ts';
import { hex } from '../frames.ts';

const LIMITS = { sectionBytes: 65_536, sectionFields: 200 };

function decoder(limits = LIMITS): HpackDecoder {
  return new HpackDecoder(limits);
}

/** `a: b`, put in the table. */
const A_B = '4001 61 01 62';

describe('an HPACK decoding error ends the connection', () => {
  test.each([
    ['hpack_index', 'index 0', '80'],
    ['hpack_index', 'an entry that the table does not have', 'be'],
    ['hpack_index', 'an entry beyond the last', `${A_B} bf`],
    ['hpack_index', 'the name of an entry that the table does not have', '7e 01 62'],
    ['hpack_index', 'an index that is large', 'ff ff ff 7f'],
    ['hpack_integer', 'an index that is larger than any block', 'ff ff ff ff ff 0f'],
    ['hpack_integer', 'a length that is larger than any block', '00 7f ff ff ff ff 0f'],
    ['hpack_integer', 'zeros without end', 'ff 80 80 80 80 80 00'],
    ['hpack_truncated', 'an integer without its end', 'ff ff'],
    ['hpack_truncated', 'a field without a value', '40 01 61'],
    ['hpack_truncated', 'a field without a name', '40'],
    ['hpack_truncated', 'a value that is longer than the block', '40 01 61 02 62'],
    ['hpack_huffman', 'EOS', '00 84 ffffffff 01 62'],
    ['hpack_huffman', 'EOS after a char', '00 85 1fffffffff 01 62'],
    ['hpack_huffman', 'padding of eight bits', '00 82 1fff 01 62'],
    ['hpack_huffman', 'padding of a code that is cut', '00 81 ff 01 62'],
    ['hpack_huffman', 'padding that is not ones', '00 81 18 01 62'],
    ['hpack_huffman', 'padding that is not ones, in a value', '00 01 61 81 1e'],
    ['hpack_table_size', 'a table size update after a field', '82 20'],
    ['hpack_table_size', 'a table size above the limit', '3f e2 1f'],
  ])('for %s: %s', (reason, _what, wire) => {
    expect(decoder().decode(hex(wire))).toMatchObject({ kind: 'connection_fault', code: 9, reason });
  });
});

test('every octet decodes from its Huffman code', () => {
  const wire = `
ffc7fffd8fffffe2fffffe3fffffe4fffffe5fffffe6fffffe7fffffe8ffffeafffffff3fffffa7fffffabffffffdfffffeb
fffffecfffffedfffffeefffffefffffff0ffffff1ffffff2fffffffbfffffcffffffd3fffffd7fffffdbfffffdffffffe3f
ffffe7fffffebfffffed4fe3f9ffaffcabf1febfafefe7fdfd2cbb00089969b71d79fb9f7fff20ffbff3ff50ddbd7f061c58
f265cd9f469d5af66dddbf871e5f9cff7ff7fffc3ff9ffe45fff4719242cb34e6e9d68a6a3d7dac426defe3cfaf7fffbfe7f
fbffdffffffcfffe6ffff4bfff9ffffa3fffd3ffff53fffd5ffffb3fffeb7fffdaffffb7ffff73fffeeffffdeffffebffffb
fffffd9ffffdbfffebffffe0ffffeeffffc3ffff8bffff1ffffe4fffee7fffb1ffff97fffd9ffffcdffff9fffffbffffdaff
feeffff4ffffb7fffee7fffe8ffffd3fffdeffffd5fffeeffffbdffffe1fffdfffff7fffff5ffffecffff07fff87fffe0fff
f17fffedffff87ffff77fffeffffeaffff8bfffe3ffff93ffff87fffcbffff37ffff1fffff83ffffe1fffebfffe3ffff3fff
ff2ffffa3ffffd9fffff17ffffc7fffff27ffffdefffffbffffff2fffff8fffffb7fff97fff8fffffe6fffffc1fffff87fff
fe7fffffc5ffffe5fffe4ffff2fffffd1fffff4ffffffefffffe3fffffc9fffff97fffb3ffffcffffb7fffcdffff4ffff9ff
ffd1ffffcffffeaffffafffffddffffeffffff4fffff5fffffabffffa7ffffd7fffff9bffffecfffffb7fffff3fffffe8fff
ffd3fffffabfffff5fffffff7ffffecfffffdbfffffbbfffff7ffffff0fffffbbf`;
  const string = hex(wire);
  const length = Buffer.from([0xff, ((string.length - 127) & 0x7f) | 0x80, (string.length - 127) >> 7]);
  const octets = String.fromCharCode(...Array.from({ length: 256 }, (_, octet) => octet));
  expect(decoder().decode(Buffer.concat([hex('00 01 61'), length, string]))).toMatchObject({
    fields: ['a', octets],
  });
});

describe('HPACK fields that are never indexed', () => {
  test('are reported by name and not put into the table', () => {
    const block = hex(`82 1001 61 01 62 ${A_B} 1f 08 01 63`);
    expect(decoder().decode(block)).toEqual({
      kind: 'fields',
      fields: [':method', 'GET', 'a', 'b', 'a', 'b', 'authorization', 'c'],
      neverIndexed: ['a', 'authorization'],
    });
  });
});

describe('an HPACK field section over the limit', () => {
  test('is dropped from the first excess field on, and the table stays in step', () => {
    for (const limits of [
      { sectionBytes: 33, sectionFields: 200 },
      { sectionBytes: 65_536, sectionFields: 0 },
    ]) {
      const small = decoder(limits);
      expect(small.decode(hex(`${A_B} ${A_B} 4001 63 01 64`))).toEqual({ kind: 'too_large', fields: [] });
      expect(small.decode(hex('ff 00'))).toMatchObject({ reason: 'hpack_index' });
    }
    const later = decoder({ sectionBytes: 70, sectionFields: 2 });
    expect(later.decode(hex(`${A_B} ${A_B} 4001 63 01 64`))).toEqual({
      kind: 'too_large',
      fields: ['a', 'b', 'a', 'b'],
    });
    expect(later.decode(hex('be bf'))).toMatchObject({ fields: ['c', 'd', 'a', 'b'] });
  });

  test('counts 32 octets for each field, as SETTINGS_MAX_HEADER_LIST_SIZE does', () => {
    expect(decoder({ sectionBytes: 68, sectionFields: 2 }).decode(hex(`${A_B} be`))).toMatchObject({
      kind: 'fields',
    });
    expect(decoder({ sectionBytes: 67, sectionFields: 2 }).decode(hex(`${A_B} be`))).toEqual({
      kind: 'too_large',
      fields: ['a', 'b'],
    });
  });

  test('takes no memory even if a few octets expand to much', () => {
    const bomb = decoder();
    const value = Buffer.alloc(4000, 'x');
    expect(bomb.decode(Buffer.concat([hex('4001 61 7f a11e'), value]))).toMatchObject({ kind: 'fields' });
    const decoded = bomb.decode(Buffer.alloc(60_000, 0xbe));
    expect(decoded.kind).toBe('too_large');
    // Each counts 4033 octets against the limit.
    expect('fields' in decoded && decoded.fields.length / 2).toBe(Math.floor(LIMITS.sectionBytes / 4033));
    expect(bomb.decode(hex('be'))).toMatchObject({ fields: ['a', value.toString()] });
  });
});

describe('HPACK integers', () => {
  test('may have four octets after the prefix; a fifth is refused', () => {
    // 128: 127 and 1, which is written with zeros after it.
    expect(decoder().decode(hex(`00 01 61 7f 81 80 80 00 ${'78'.repeat(128)}`))).toMatchObject({
      fields: ['a', 'x'.repeat(128)],
    });
    expect(decoder().decode(hex(`00 01 61 7f 81 80 80 80 00 ${'78'.repeat(128)}`))).toMatchObject({
      reason: 'hpack_integer',
    });
  });
});

describe('the HPACK dynamic table size', () => {
  test('may be changed by updates at the beginning of a block', () => {
    const one = decoder();
    one.decode(hex(A_B));
    expect(one.decode(hex('20 3f e1 1f 82'))).toMatchObject({ fields: [':method', 'GET'] });
    expect(one.decode(hex('be'))).toMatchObject({ reason: 'hpack_index' });
  });

  test('must be reduced once a smaller limit was acknowledged', () => {
    const one = decoder();
    one.setLimit(64);
    expect(one.decode(hex('82'))).toMatchObject({ reason: 'hpack_table_size' });
    const another = decoder();
    another.setLimit(64);
    expect(another.decode(hex('3f 21 82'))).toMatchObject({ kind: 'fields' });
    expect(another.decode(hex('3f 21 82'))).toMatchObject({ kind: 'fields' });
    expect(another.decode(hex('3f 22 82'))).toMatchObject({ reason: 'hpack_table_size' });
  });

  test('may grow with a larger limit but need not', () => {
    const one = decoder();
    one.setLimit(8192);
    expect(one.decode(hex('82'))).toMatchObject({ kind: 'fields' });
    expect(one.decode(hex('3f e1 3f 82'))).toMatchObject({ kind: 'fields' });
    expect(one.decode(hex('3f e2 3f 82'))).toMatchObject({ reason: 'hpack_table_size' });
  });
});

test('the version of the HPACK table changes whenever the same block may mean something else', () => {
  const one = decoder();
  const before = one.tableVersion;
  one.decode(hex('82 00 01 61 01 62'));
  expect(one.tableVersion).toBe(before);
  one.decode(hex(A_B));
  const added = one.tableVersion;
  expect(added).not.toBe(before);
  one.decode(hex('be'));
  expect(one.tableVersion).toBe(added);
  one.decode(hex('20'));
  expect(one.tableVersion).not.toBe(added);
});
