import { describe, expect, test } from 'vitest';
import { LIMITS, readRequests, readResponses } from './transcript.ts';

const HEAD = 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n';

function readBody(chunks: string) {
  const transcript = readRequests(HEAD + chunks);
  return { ...transcript.messages[0], reason: transcript.reason };
}

describe('a chunked body', () => {
  test.each([
    ['0\r\n\r\n', ''],
    ['5\r\nhello\r\n0\r\n\r\n', 'hello'],
    ['2\r\nhe\r\n3\r\nllo\r\n00\r\n\r\n', 'hello'],
    ['0000000000000005\r\nhello\r\n0\r\n\r\n', 'hello'],
    ['A\r\n0123456789\r\n0\r\n\r\n', '0123456789'],
    ['a\r\n0123456789\r\n0\r\n\r\n', '0123456789'],
    ['5\r\n0\r\n\r\n\r\n0\r\n\r\n', '0\r\n\r\n'],
    ['00000000000000005\r\nhello\r\n0\r\n\r\n', 'hello'],
    [`5\r\nhello\r\n${'0'.repeat(100)}\r\n\r\n`, 'hello'],
    ['5;a="b\tc"\r\nhello\r\n0\r\n\r\n', 'hello'],
    ['5 ;a\r\nhello\r\n0\t; a \t= b ; c="d" ;e\r\n\r\n', 'hello'],
    ['5;a\r\nhello\r\n0;a;b=c;d="e;\\"\\\\ "\r\n\r\n', 'hello'],
  ])('as %j is read', (chunks, body) => {
    expect(readBody(chunks)).toMatchObject({ body, complete: true });
  });

  test.each([
    ['\r\n', 'chunk_size_malformed'],
    ['x\r\n', 'chunk_size_malformed'],
    ['+5\r\nhello', 'chunk_size_malformed'],
    ['-5\r\nhello', 'chunk_size_malformed'],
    ['0x5\r\nhello', 'chunk_size_malformed'],
    [' 5\r\nhello', 'chunk_size_malformed'],
    ['5 \r\nhello', 'chunk_extension_malformed'],
    ['5\t\r\nhello', 'chunk_extension_malformed'],
    ['5 5\r\nhello', 'chunk_extension_malformed'],
    ['5; \r\nhello', 'chunk_extension_malformed'],
    ['5;a= \r\nhello', 'chunk_extension_malformed'],
    ['5;a b\r\nhello', 'chunk_extension_malformed'],
    ['5;a="b" \r\nhello', 'chunk_extension_malformed'],
    ['5_0\r\nhello', 'chunk_size_malformed'],
    ['5g\r\nhello', 'chunk_size_malformed'],
    ['5,5\r\nhello', 'chunk_size_malformed'],
    ['\xb25\r\nhello', 'chunk_size_malformed'],
    ['20000000000000\r\n', 'chunk_size_malformed'],
    ['ffffffffffffffff\r\n', 'chunk_size_malformed'],
    ['10000000000000005\r\nhello', 'chunk_size_malformed'],
    ['5\nhello\r\n', 'chunk_line_unterminated'],
    ['5\rhello', 'chunk_line_unterminated'],
    ['5\r\rhello', 'chunk_line_unterminated'],
    ['5;a\rb\r\nhello', 'chunk_line_unterminated'],
    ['5\r\nhello0\r\n\r\n', 'chunk_data_unterminated'],
    ['5\r\nhello!\r\n0\r\n\r\n', 'chunk_data_unterminated'],
    ['5\r\nhello\n0\r\n\r\n', 'chunk_data_unterminated'],
    ['5\r\nhello\r0\r\n\r\n', 'chunk_data_unterminated'],
    ['5\r\nhello\r\r\n0\r\n\r\n', 'chunk_data_unterminated'],
    ['5;\r\nhello', 'chunk_extension_malformed'],
    ['5;a \r\nhello', 'chunk_extension_malformed'],
    ['5;a=\r\nhello', 'chunk_extension_malformed'],
    ['5;=a\r\nhello', 'chunk_extension_malformed'],
    ['5;a="b\r\nhello', 'chunk_extension_malformed'],
    ['5;a="b"c\r\nhello', 'chunk_extension_malformed'],
    ['5;a="\\\r\n"\r\nhello', 'chunk_extension_malformed'],
    ['5;a\nhello', 'chunk_extension_malformed'],
    ['5;a\0\r\nhello', 'chunk_extension_malformed'],
    ['5;a="\x80"\r\nhello', 'chunk_extension_malformed'],
    ['0\n\r\n', 'chunk_line_unterminated'],
    ['0\r\n\n', 'bare_lf'],
    ['0\r\n\rX', 'bare_cr'],
  ])('as %j is refused: %s', (chunks, reason) => {
    expect(readBody(chunks)).toMatchObject({ complete: false, reason });
  });

  describe('of an answer', () => {
    function readResponse(chunks: string) {
      const { messages, reason } = readResponses(
        `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}`,
      );
      return { ...messages[0], reason };
    }

    test.each([
      '5 \r\nhello\r\n0\r\n\r\n',
      '5     \r\nhello\r\n0     \r\n\r\n',
      '5\t \r\nhello\r\n0\t\r\n\r\n',
      '5;a \r\nhello\r\n0;a=b\t\r\n\r\n',
      '5;a="b" \r\nhello\r\n0 ; a = b \r\n\r\n',
    ])('as %j, with padded sizes, is read', (chunks) => {
      expect(readResponse(chunks)).toMatchObject({ body: 'hello', complete: true });
    });

    test.each([
      ['5 5\r\nhello', 'chunk_extension_malformed'],
      ['5; \r\nhello', 'chunk_extension_malformed'],
      ['5;a= \r\nhello', 'chunk_extension_malformed'],
      ['5;a b\r\nhello', 'chunk_extension_malformed'],
      ['5 \nhello', 'chunk_extension_malformed'],
      ['5 \rhello', 'chunk_line_unterminated'],
      [' 5\r\nhello', 'chunk_size_malformed'],
      ['5\x0b\r\nhello', 'chunk_size_malformed'],
      [' \r\nhello', 'chunk_size_malformed'],
      [`5${' '.repeat(16_385)}\r\nhello`, 'chunk_extensions_too_large'],
    ])('as %j is refused too: %s', (chunks, reason) => {
      expect(readResponse(chunks)).toMatchObject({ complete: false, reason });
    });
  });

  test('may have a size below 2^53', () => {
    expect(readBody('1fffffffffffff\r\nx')).toMatchObject({ body: 'x', complete: false, reason: undefined });
  });

  test('has its extensions limited over all chunks of a message', () => {
    const extension = `;${'a'.repeat(1023)}`;
    const chunk = `1${extension}\r\nx\r\n`;
    expect(readBody(`${chunk.repeat(16)}0\r\n\r\n`)).toMatchObject({ body: 'x'.repeat(16), complete: true });
    expect(readBody(`${chunk.repeat(16)}0;a\r\n\r\n`)).toMatchObject({
      reason: 'chunk_extensions_too_large',
    });
  });

  test('may have any number of sizes without leading zeros', () => {
    const chunk = `10\r\n${'x'.repeat(16)}\r\n`;
    expect(readBody(`${chunk.repeat(16_400)}0\r\n\r\n`)).toMatchObject({ complete: true });
  });

  test('may have a limited number of leading zeros in a size', () => {
    expect(readBody(`${'0'.repeat(16_384)}5\r\nhello\r\n0\r\n\r\n`)).toMatchObject({ body: 'hello' });
    expect(readBody(`${'0'.repeat(16_385)}5\r\nhello\r\n0\r\n\r\n`).reason).toBe(
      'chunk_extensions_too_large',
    );
  });

  test('has the leading zeros of all sizes limited together', () => {
    expect(readBody(`${'0'.repeat(16_386)}\r\n`)).toMatchObject({ reason: 'chunk_extensions_too_large' });
  });

  test('is incomplete if the connection ends amid it', () => {
    const text = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n';
    expect(readResponses(text).messages).toMatchObject([{ body: 'hello', complete: false }]);
  });
});

describe('trailers of a chunked body', () => {
  function readTrailers(lines: string) {
    return readBody(`5\r\nhello\r\n0\r\n${lines}\r\n`);
  }

  test('keep order, case and repetitions', () => {
    expect(readTrailers('X-b: 1\r\nServer-Timing:  a \r\nx-B: 2\r\n')).toMatchObject({
      trailers: ['X-b', '1', 'Server-Timing', 'a', 'x-B', '2'],
      complete: true,
    });
  });

  test.each([
    'Host: b',
    'AUTHORIZATION: Bearer x',
    'Proxy-Authorization: Basic x',
    'Content-Type: a/b',
    'Content-Encoding: gzip',
    'TE: trailers',
    'Trailer: X',
    'Upgrade: x',
    'Via: 1.1 a',
    'Keep-Alive: timeout=5',
    'Max-Forwards: 1',
    'Cookie: a=b',
    'Set-Cookie: a=b',
    'WWW-Authenticate: Basic',
    'Age: 1',
    'Allow: GET',
    'Cache-Control: no-store',
    'Date: Tue, 01 Jan 2030 00:00:00 GMT',
    'Expires: 0',
    'Location: /',
    'Pragma: no-cache',
    'Range: bytes=0-1',
    'Retry-After: 1',
    'Vary: *',
    'Warning: 199 - x',
    'If-Match: *',
    'Expect: 100-continue',
    'Access-Control-Allow-Origin: *',
    'Sec-Fetch-Site: none',
    'X-Forwarded-For: a',
    'Forwarded: for=a',
    'token-sidecar-hop: x',
  ])('named %s are dropped', (line) => {
    expect(readTrailers(`X: 1\r\n${line}\r\nY: 2\r\n`)).toMatchObject({
      trailers: ['X', '1', 'Y', '2'],
      complete: true,
    });
  });

  test.each(['Xcontent-type: a', 'X-If: a', 'Dates: a', 'X-content-length: 5', 'Connections: close'])(
    'named %s, which resembles a dropped one, are kept',
    (line) => {
      expect(readTrailers(`${line}\r\n`)).toMatchObject({ trailers: line.split(': '), complete: true });
    },
  );

  test.each([
    ['content-length: 5', 'control_in_trailers'],
    ['Transfer-Encoding: chunked', 'control_in_trailers'],
    ['Connection: close', 'control_in_trailers'],
    ['Proxy-Connection: close', 'control_in_trailers'],
    ['X', 'name_malformed'],
    ['X : 1', 'name_malformed'],
    [' X: 1', 'folded_line'],
    ['X: 1\r\n 2', 'folded_line'],
    ['X: \0', 'control_octet'],
    ['X: 1\rY: 2', 'bare_cr'],
    ['X: 1\nY: 2', 'bare_lf'],
    ['X\nY: 2', 'bare_lf'],
  ])('as %j are refused: %s', (line, reason) => {
    expect(readTrailers(`${line}\r\n`)).toMatchObject({ complete: false, reason });
  });

  test('are limited in octets and number like a head', () => {
    const limits = { ...LIMITS, headerBytes: 80, headerCount: 3 };
    const trailers = (lines: string) => readRequests(`${HEAD}0\r\n${lines}\r\n`, limits);
    expect(trailers('A: 1\r\nB: 2\r\nC: 3\r\n').messages).toMatchObject([{ complete: true }]);
    expect(trailers('A: 1\r\nB: 2\r\nC: 3\r\nD: 4\r\n').reason).toBe('too_many_fields');
    expect(trailers(`A: ${'a'.repeat(73)}\r\n`).messages).toMatchObject([{ complete: true }]);
    expect(trailers(`A: ${'a'.repeat(74)}\r\n`).reason).toBe('trailers_too_large');
  });
});
