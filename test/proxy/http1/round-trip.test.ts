import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { FieldLines as Fields } from '../../../src/proxy/http1/field-section.ts';
import { requestHeadReader, responseHeadReader } from '../../../src/proxy/http1/head-reader.ts';
import {
  CHUNK_END,
  chunkStart,
  lastChunk,
  serializeRequestHead,
  serializeResponseHead,
} from '../../../src/proxy/http1/serialize.ts';
import { cutAt, LIMITS, octets, transcribe } from './transcript.ts';

const TCHAR = [..."!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"];

function textOf(chars: readonly string[], minLength: number, maxLength: number) {
  return fc.string({ unit: fc.constantFrom(...chars), minLength, maxLength });
}

const octetRange = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => String.fromCharCode(from + index));

const method = textOf(
  TCHAR.filter((char) => !/[a-z]/.test(char)),
  1,
  32,
).filter((name) => name !== 'CONNECT');
const target = textOf(
  octetRange(0x21, 0x7e).filter((char) => char !== '#' && char !== '\\'),
  0,
  60,
).map((rest) => `/${rest}`);
const value = textOf(['\t', ...octetRange(0x20, 0x7e), ...octetRange(0x80, 0xff)], 0, 40).map((text) =>
  text.replace(/^[ \t]+|[ \t]+$/g, ''),
);
/** Names that have no meaning to the codec, with values free of surrounding whitespace. */
const plainField = fc.tuple(
  textOf(TCHAR, 1, 20).map((name) => `x${name}`),
  value,
);
const framingField = fc.constantFrom<[string, string] | undefined>(
  undefined,
  ['Content-Length', '7'],
  ['transfer-encoding', 'Chunked'],
);

function shuffled(fields: readonly (readonly [string, string])[]) {
  return fc.shuffledSubarray([...fields], { minLength: fields.length }).map((order) => order.flat());
}

describe('parsing what was serialized gives the same HTTP/1.1 message', () => {
  test('for requests with valid fields in any order', () => {
    const request = fc
      .record({ method, target, plain: fc.array(plainField, { maxLength: 12 }), framing: framingField })
      .chain(({ plain, framing, ...line }) =>
        shuffled([['Host', 'a.example:80'], ...plain, ...(framing === undefined ? [] : [framing])]).map(
          (fields) => ({ ...line, fields, framing }),
        ),
      );
    fc.assert(
      fc.property(request, ({ method, target, fields, framing }) => {
        const bytes = octets(serializeRequestHead(method, target, fields));
        const reader = requestHeadReader(LIMITS);
        const head = reader.read(bytes, 0);
        expect(head).toMatchObject({ method, target, fields, host: 'a.example:80', persistent: true });
        expect(reader.position).toBe(bytes.length);
        expect(head?.framing).toEqual(
          framing === undefined
            ? { kind: 'none' }
            : framing[1] === '7'
              ? { kind: 'length', bytes: 7 }
              : { kind: 'chunked' },
        );
      }),
    );
  });

  test('for answers', () => {
    const response = fc.record({
      status: fc.integer({ min: 100, max: 999 }),
      reason: value,
      fields: fc.array(plainField, { maxLength: 12 }).map((fields) => fields.flat()),
    });
    fc.assert(
      fc.property(response, ({ status, reason, fields }) => {
        const head = responseHeadReader(LIMITS).read(
          octets(serializeResponseHead(status, reason, fields)),
          0,
        );
        expect(head).toMatchObject({ status, reason, fields });
      }),
    );
  });

  test('for chunked bodies with trailers in any split', () => {
    const pieces = fc.array(fc.uint8Array({ minLength: 1, maxLength: 50 }), { maxLength: 5 });
    const trailers = fc.array(plainField, { maxLength: 4 }).map((fields): Fields => {
      return fields.flatMap(([name, text]): [string, string] => [`y${name}`, text]);
    });
    fc.assert(
      fc.property(pieces, trailers, fc.array(fc.nat(400), { maxLength: 8 }), (data, fields, where) => {
        const head = serializeRequestHead('POST', '/', ['Host', 'a', 'Transfer-Encoding', 'chunked']);
        const chunks = data.map((piece) => [octets(chunkStart(piece.length)), piece, octets(CHUNK_END)]);
        const bytes = Buffer.concat([octets(head), ...chunks.flat(), octets(lastChunk(fields))]);
        expect(transcribe({ kind: 'request', pieces: cutAt(bytes, where) })).toMatchObject({
          messages: [{ body: Buffer.concat(data).toString('latin1'), trailers: fields, complete: true }],
          end: 'open',
        });
      }),
    );
  });
});
