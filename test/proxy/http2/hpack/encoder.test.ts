import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FrameOutput } from '../../../../src/proxy/http2/frame-output.ts';
import { HpackDecoder } from '../../../../src/proxy/http2/hpack/decoder.ts';
import { HpackEncoder } from '../../../../src/proxy/http2/hpack/encoder.ts';
import { collectGarbage } from '../../../support/collect-garbage.ts';
import { hex } from '../frames.ts';

const LIMITS = { sectionBytes: 1_000_000, sectionFields: 1000 };

function encoded(
  fields: readonly string[],
  neverIndexed: readonly string[] = [],
  encoder = new HpackEncoder(),
): Buffer {
  const output = new FrameOutput(Buffer.alloc(1));
  encoder.begin(output);
  encoder.fields(output, fields, neverIndexed);
  return Buffer.from(output.take());
}

describe('the HPACK encoder writes', () => {
  test.each([
    ['name and value in the static table', [':method', 'POST', ':status', '404', ':path', '/'], '83 8d 84'],
    ['an empty value of the static table', ['accept', ''], '93'],
    ['name in the static table', [':path', '/a'], '04 02 2f61'],
    ['name late in the static table', ['user-agent', 'x'], '0f2b 01 78'],
    ['neither', ['te', 'trailers'], '00 02 7465 08 747261696c657273'],
  ])('%s', (_name, fields, wire) => {
    expect(encoded(fields)).toEqual(hex(wire));
  });

  test('credentials, and fields received so, as never indexed', () => {
    expect(encoded(['authorization', 'x'])).toEqual(hex('1f08 01 78'));
    expect(encoded(['proxy-authorization', 'x'])).toEqual(hex('1f22 01 78'));
    expect(encoded(['te', 'x', ':path', '/', 'a', 'b'], ['te', ':path'])).toEqual(
      hex('10 02 7465 01 78 14 01 2f 00 01 61 01 62'),
    );
  });
});

test('what the HPACK encoder writes reads back and enters no table', () => {
  const octet = fc.integer({ min: 1, max: 255 }).filter((code) => code !== 10 && code !== 13);
  const text = fc.array(octet, { maxLength: 300 }).map((codes) => String.fromCharCode(...codes));
  const name = fc.oneof(fc.constantFrom(':path', 'accept', 'via', 'x-y', 'cookie'), text);
  fc.assert(
    fc.property(fc.array(fc.tuple(name, text, fc.boolean()), { maxLength: 20 }), (list) => {
      const decoder = new HpackDecoder(LIMITS);
      const fields = list.flatMap((entry) => entry.slice(0, 2) as string[]);
      const never = list.flatMap(([field, , flag]) => (flag ? [field] : []));
      const version = decoder.tableVersion;
      const names = fields.filter((_, index) => index % 2 === 0 && never.includes(fields[index] as string));
      expect(decoder.decode(encoded(fields, never))).toEqual({ kind: 'fields', fields, neverIndexed: names });
      expect(decoder.tableVersion).toBe(version);
    }),
  );
});

test.each([126, 127, 128, 254, 255, 16_510, 16_511, 70_000])(
  'HPACK encodes a value of %d octets',
  (length) => {
    const fields = ['x', 'v'.repeat(length)];
    expect(new HpackDecoder(LIMITS).decode(encoded(fields))).toMatchObject({ fields });
  },
);

describe('an HPACK peer whose table became smaller', () => {
  test('gets one table size update to zero at the beginning of a block', () => {
    const encoder = new HpackEncoder();
    encoder.setPeerTableSize(4096);
    expect(encoded([':method', 'GET'], [], encoder)).toEqual(hex('82'));
    encoder.setPeerTableSize(100);
    expect(encoded([':method', 'GET'], [], encoder)).toEqual(hex('20 82'));
    encoder.setPeerTableSize(10);
    expect(encoded([':method', 'GET'], [], encoder)).toEqual(hex('82'));
  });

  test('reads the following blocks', () => {
    const encoder = new HpackEncoder();
    const decoder = new HpackDecoder(LIMITS);
    encoder.setPeerTableSize(0);
    decoder.setLimit(0);
    for (let block = 0; block < 2; block++) {
      expect(decoder.decode(encoded(['a', 'b'], [], encoder))).toMatchObject({ fields: ['a', 'b'] });
    }
  });
});

describe('the check in the HPACK encoder', () => {
  const long = 'x'.repeat(100);
  test.each([
    ['a CR', 'x\r'],
    ['a LF', '\nx'],
    ['a NUL', 'x\0'],
    ['a char that is no octet', 'x\u0120'],
    ['a LF in a long value', `${long}\n`],
    ['a char that is no octet in a long value', `${long}\u0120`],
  ])('refuses %s', (_name, value) => {
    expect(() => encoded(['x', value])).toThrow(expect.objectContaining({ code: 'internal' }));
    expect(() => encoded([value, 'x'])).toThrow(expect.objectContaining({ code: 'internal' }));
  });

  test('refuses a name without a value and does not quote the value', () => {
    expect(() => encoded(['x'])).toThrow('no value');
    expect(() => encoded(['authorization', 'Bearer secret\n'])).toThrow(/^(?!.*secret)/);
  });
});

test('an idle HPACK encoder holds no reference to the head of its last field', async () => {
  const heads = 100;
  const bytes = 100_000;
  await collectGarbage();
  const before = process.memoryUsage().heapUsed;
  const encoders = Array.from({ length: heads }, (_, at) => {
    const head = Buffer.alloc(bytes, `${at}-`).toString('latin1');
    const encoder = new HpackEncoder();
    encoded(['x', head.slice(0, 100)], [], encoder);
    return encoder;
  });
  await collectGarbage();
  expect(process.memoryUsage().heapUsed - before).toBeLessThan((heads * bytes) / 4);
  expect(encoders).toHaveLength(heads);
});
