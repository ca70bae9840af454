import { describe, expect, test } from 'vitest';
import { makeLasting } from '../../../src/proxy/http/lasting-fields.ts';
import {
  CHUNK_END,
  chunkStart,
  lastChunk,
  serializeRequestHead,
  serializeResponseHead,
} from '../../../src/proxy/http1/serialize.ts';
import { collectGarbage } from '../../support/collect-garbage.ts';

const internal = expect.objectContaining({ code: 'internal' });

describe('the HTTP/1.1 serializer', () => {
  test('writes a request head', () => {
    expect(serializeRequestHead('GET', '/a?b', ['Host', 'a', 'x', '1', 'X', ''])).toBe(
      'GET /a?b HTTP/1.1\r\nHost: a\r\nx: 1\r\nX: \r\n\r\n',
    );
  });

  test('writes a response head', () => {
    expect(serializeResponseHead(404, 'Not Found', ['X', '\xe9'])).toBe(
      'HTTP/1.1 404 Not Found\r\nX: \xe9\r\n\r\n',
    );
    expect(serializeResponseHead(200, '', [])).toBe('HTTP/1.1 200 \r\n\r\n');
  });

  test('writes its current input whatever lasting fields it wrote before', () => {
    const fields = ['X', '1'];
    makeLasting(fields);
    for (const method of ['GET', 'PUT', 'GET']) {
      for (const target of ['/a', '/b', '/b']) {
        expect(serializeRequestHead(method, target, fields)).toBe(
          `${method} ${target} HTTP/1.1\r\nX: 1\r\n\r\n`,
        );
      }
    }
    for (const status of [200, 404, 200]) {
      for (const reason of ['Fine', '', '']) {
        expect(serializeResponseHead(status, reason, fields)).toBe(
          `HTTP/1.1 ${status} ${reason}\r\nX: 1\r\n\r\n`,
        );
      }
    }
  });

  test('does not keep a long head', async () => {
    const kept = Array.from({ length: 200 }, (_, at) => ['X', String(at)]);
    await collectGarbage();
    const before = process.memoryUsage().heapUsed;
    for (const fields of kept) {
      makeLasting(fields);
      expect(serializeRequestHead('GET', `/${'a'.repeat(15_000)}`, fields)).toContain('\r\nX: ');
      expect(serializeResponseHead(200, 'b'.repeat(15_000), fields)).toContain('\r\nX: ');
    }
    await collectGarbage();
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(kept.length * 15_000);
  });

  test('writes chunks', () => {
    expect(`${chunkStart(26)}${'x'.repeat(26)}${CHUNK_END}`).toBe(`1a\r\n${'x'.repeat(26)}\r\n`);
    expect(lastChunk([])).toBe('0\r\n\r\n');
    expect(lastChunk(['X', '1', 'Y', '2'])).toBe('0\r\nX: 1\r\nY: 2\r\n\r\n');
  });

  test.each([0, -1, 1.5, Number.NaN, 2 ** 53])('refuses a chunk of %s octets', (bytes) => {
    expect(() => chunkStart(bytes)).toThrowError(internal);
  });

  test.each(['\r', '\n', '\r\n', '\0', '\u010a', '\u010d', '\u{1f600}', '\r\nX: y'])(
    'refuses %j in every part',
    (evil) => {
      const parts = [`${evil}a`, `a${evil}`, `a${evil}b`];
      for (const part of parts) {
        expect(() => serializeRequestHead(part, '/', [])).toThrowError(internal);
        expect(() => serializeRequestHead('GET', part, [])).toThrowError(internal);
        expect(() => serializeRequestHead('GET', '/', [part, 'a'])).toThrowError(internal);
        expect(() => serializeRequestHead('GET', '/', ['a', part])).toThrowError(internal);
        expect(() => serializeResponseHead(200, part, [])).toThrowError(internal);
        expect(() => serializeResponseHead(200, '', ['a', part])).toThrowError(internal);
        expect(() => lastChunk([part, 'a'])).toThrowError(internal);
        expect(() => lastChunk(['a', part])).toThrowError(internal);
      }
    },
  );

  test('writes a long part each time as it is, and checks it each time', () => {
    const [one, other] = ['a'.repeat(300), 'b'.repeat(300)];
    const head = (value: string) => serializeRequestHead('GET', '/', ['x', value]);
    for (const value of [one, one, other, one]) {
      expect(head(value)).toBe(`GET / HTTP/1.1\r\nx: ${value}\r\n\r\n`);
      expect(() => head(`${value}\r`)).toThrowError(internal);
    }
    // Not even the second time.
    expect(() => head(`${one}\r`)).toThrowError(internal);
    expect(() => head(`${one}\r`)).toThrowError(internal);
  });

  test('refuses a name without a value', () => {
    expect(() => serializeRequestHead('GET', '/', ['Host'])).toThrowError(internal);
  });

  test('does not quote in errors what it refuses', () => {
    expect(() => serializeRequestHead('GET', '/', ['Authorization', 'Bearer s3cret\n'])).toThrowError(
      expect.not.objectContaining({ message: expect.stringContaining('s3cret') }),
    );
  });
});
