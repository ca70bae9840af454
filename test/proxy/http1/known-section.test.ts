import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isLasting } from '../../../src/proxy/http/lasting-fields.ts';
import { requestHeadReader, responseHeadReader } from '../../../src/proxy/http1/head-reader.ts';
import { LIMITS } from './transcript.ts';

const SECTIONS = [
  'Host: a\r\n\r\n',
  'Host: a\r\nX-One: 1\r\n\r\n',
  'Host: a\r\nX-One: 2\r\n\r\n',
  'Host: a\r\nContent-Length: 007\r\n\r\n',
  'Host: a\r\nTransfer-Encoding: chunked\r\n\r\n',
  'Host: a\r\nConnection: close\r\n\r\n',
  'Content-Length: 5\r\nContent-Length: 5\r\n\r\n',
  'Host : a\r\n\r\n',
];

const REQUEST_LINES = [
  'GET / HTTP/1.1',
  'POST /b HTTP/1.1',
  'OPTIONS * HTTP/1.1',
  'GET /c HTTP/1.0',
  'TRACE / HTTP/1.1',
];
const STATUS_LINES = [
  'HTTP/1.1 200 OK',
  'HTTP/1.1 404 Not Found',
  'HTTP/1.0 200 OK',
  'HTTP/1.1 204 No Content',
];

/** What a head is read as: itself, or why it is refused. */
function read(reader: { read(chunk: Buffer, start: number): object | undefined }, text: string): unknown {
  try {
    return reader.read(Buffer.from(text, 'latin1'), 0);
  } catch (error) {
    return String(error);
  }
}

test.each([
  ['requests', REQUEST_LINES, requestHeadReader],
  ['answers', STATUS_LINES, responseHeadReader],
] as const)('%s are parsed the same whatever was parsed before', (_kind, lines, makeReader) => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.constantFrom(...lines), fc.nat(SECTIONS.length - 1)), {
        minLength: 1,
        maxLength: 30,
      }),
      (heads) => {
        let reader = makeReader(LIMITS);
        for (const [line, index] of heads) {
          const text = `${line}\r\n${SECTIONS[index]}`;
          const head = read(reader, text);
          // Other limits, though they say the same: nothing is known by them.
          expect(head).toEqual(read(makeReader({ ...LIMITS }), text));
          expect(head).toEqual(read(makeReader(LIMITS), text));
          if (typeof head === 'string') reader = makeReader(LIMITS);
        }
      },
    ),
    { numRuns: 300 },
  );
});

test('the fields of a repeated section are the same array, whatever the start line says', () => {
  const reader = requestHeadReader(LIMITS);
  const heads = ['GET /a', 'GET /b', 'POST /c'].map((line) => {
    return reader.read(Buffer.from(`${line} HTTP/1.1\r\n${SECTIONS[1]}`), 0);
  });
  const fields = heads.map((head) => head?.fields ?? []);
  expect(fields[1]).toBe(fields[0]);
  expect(fields[2]).toBe(fields[0]);
  expect(isLasting(fields[0] ?? [])).toBe(true);
});

test.each([
  ['HTTP/1.0', 'GET / HTTP/1.0', SECTIONS[1]],
  ['a section that is large', 'GET / HTTP/1.1', `Host: a\r\nX: ${'x'.repeat(2048)}\r\n\r\n`],
])('different fields are returned each time for %s', (_why, line, section) => {
  const reader = requestHeadReader(LIMITS);
  const [one, other] = [0, 1].map(() => reader.read(Buffer.from(`${line}\r\n${section}`), 0));
  expect(other?.fields).toEqual(one?.fields);
  expect(other?.fields).not.toBe(one?.fields);
});

describe('a field section remembered from another connection’s first request', () => {
  const text = (name: string): Buffer => Buffer.from(`GET / HTTP/1.1\r\nHost: ${name}\r\n\r\n`);

  test('is reused', () => {
    const limits = { ...LIMITS };
    const [one, other] = [0, 1].map(() => requestHeadReader(limits).read(text('a'), 0)?.fields);
    expect(other).toBe(one);
    expect(isLasting(one ?? [])).toBe(true);
  });

  test('is not reused under other limits', () => {
    const header = Buffer.from('GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n\r\n');
    requestHeadReader({ ...LIMITS }).read(header, 0);
    const strict = requestHeadReader({ ...LIMITS, headerCount: 1 });
    expect(() => strict.read(header, 0)).toThrow();
  });

  test('is evicted after sixteen others', () => {
    const limits = { ...LIMITS };
    const first = requestHeadReader(limits).read(text('a'), 0)?.fields;
    for (let other = 0; other < 16; other++) requestHeadReader(limits).read(text(`other-${other}`), 0);
    expect(requestHeadReader(limits).read(text('a'), 0)?.fields).not.toBe(first);
  });

  test('is kept apart from answers with the same text', () => {
    const limits = { ...LIMITS };
    const section = 'Host: a\r\n\r\n';
    const request = requestHeadReader(limits).read(Buffer.from(`GET / HTTP/1.1\r\n${section}`), 0);
    const answer = responseHeadReader(limits).read(Buffer.from(`HTTP/1.1 200 OK\r\n${section}`), 0);
    expect(answer?.fields).not.toBe(request?.fields);
  });
});

describe('a field section remembered from another connection’s last request', () => {
  const answer = (second: number): Buffer => Buffer.from(`HTTP/1.1 200 OK\r\nDate: ${second}\r\n\r\n`);

  test('is reused by connections that began long before', () => {
    const limits = { ...LIMITS };
    const readers = [0, 1, 2].map(() => responseHeadReader(limits));
    for (let second = 0; second < 100; second++) {
      const [one, ...others] = readers.map((reader) => reader.read(answer(second), 0)?.fields);
      expect(one?.[1]).toBe(String(second));
      for (const other of others) expect(other).toBe(one);
      expect(isLasting(one ?? [])).toBe(true);
    }
  });

  test('is evicted after four others', () => {
    const limits = { ...LIMITS };
    const [one, other] = [responseHeadReader(limits), responseHeadReader(limits)];
    other.read(answer(0), 0);
    const first = one.read(answer(1), 0)?.fields;
    for (let second = 2; second < 6; second++) one.read(answer(second), 0);
    expect(other.read(answer(1), 0)?.fields).not.toBe(first);
    expect(one.read(answer(2), 0)?.fields).toEqual(['Date', '2']);
  });
});
