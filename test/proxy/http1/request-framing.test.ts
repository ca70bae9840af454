import { describe, expect, test } from 'vitest';
import { requestHeadReader } from '../../../src/proxy/http1/head-reader.ts';
import { LIMITS, octets, readRequests } from './transcript.ts';

function post(...lines: string[]): string {
  return `${['POST / HTTP/1.1', 'Host: a', ...lines].join('\r\n')}\r\n\r\n`;
}

function framingOf(...lines: string[]) {
  return requestHeadReader(LIMITS).read(octets(post(...lines)), 0)?.framing;
}

describe('the framing of an HTTP/1.1 request', () => {
  test('without Content-Length and Transfer-Encoding has no body', () => {
    expect(framingOf()).toEqual({ kind: 'none' });
    expect(framingOf('Content-Type: a/b')).toEqual({ kind: 'none' });
  });

  test.each([
    ['Content-Length: 0', 0],
    ['CONTENT-LENGTH:5', 5],
    ['content-length:  5  ', 5],
    ['content-length: 005', 5],
    ['content-length: 00', 0],
    [`content-length: ${'0'.repeat(40)}7`, 7],
    ['Content-Length: 9007199254740991', Number.MAX_SAFE_INTEGER],
  ])('with %j has a length', (line, bytes) => {
    expect(framingOf(line)).toEqual({ kind: 'length', bytes });
  });

  test.each(['Transfer-Encoding: chunked', 'transfer-encoding:CHUNKED', 'Transfer-Encoding:  Chunked '])(
    'with %j is chunked',
    (line) => expect(framingOf(line)).toEqual({ kind: 'chunked' }),
  );

  test.each([
    ['', 'length_malformed'],
    ['+5', 'length_malformed'],
    ['-5', 'length_malformed'],
    ['5.0', 'length_malformed'],
    ['5e0', 'length_malformed'],
    ['0x5', 'length_malformed'],
    ['5 5', 'length_malformed'],
    ['5, 5', 'length_malformed'],
    ['5,5', 'length_malformed'],
    ['5,', 'length_malformed'],
    ['"5"', 'length_malformed'],
    ['5;', 'length_malformed'],
    ['\xb2', 'length_malformed'],
    ['1_0', 'length_malformed'],
    ['9007199254740992', 'length_malformed'],
    ['18446744073709551621', 'length_malformed'],
    ['\t5', 'framing_tab'],
    ['5\t', 'framing_tab'],
  ])('with Content-Length: %j is refused: %s', (value, reason) => {
    expect(readRequests(post(`Content-Length: ${value}`))).toMatchObject({ messages: [], reason });
  });

  test.each([
    ['', 'coding_unknown'],
    ['identity', 'coding_unknown'],
    ['gzip', 'coding_unknown'],
    ['xchunked', 'coding_unknown'],
    ['chunkedx', 'coding_unknown'],
    ['chunked,', 'coding_unknown'],
    [',chunked', 'coding_unknown'],
    ['chunked, chunked', 'coding_unknown'],
    ['gzip, chunked', 'coding_unknown'],
    ['chunked, identity', 'coding_unknown'],
    ['chunked;q=1', 'coding_unknown'],
    ['"chunked"', 'coding_unknown'],
    ["'chunked'", 'coding_unknown'],
    ['ch\u0075nked\xa0', 'coding_unknown'],
    ['\x0bchunked', 'control_octet'],
    ['chunked\0', 'control_octet'],
    ['\tchunked', 'framing_tab'],
    ['chunked \t', 'framing_tab'],
    ['\r\n chunked', 'folded_line'],
  ])('with Transfer-Encoding: %j is refused: %s', (value, reason) => {
    expect(readRequests(post(`Transfer-Encoding: ${value}`))).toMatchObject({ messages: [], reason });
  });

  test.each([
    [['Content-Length: 5', 'Content-Length: 5'], 'length_repeated'],
    [['Content-Length: 5', 'content-length: 6'], 'length_repeated'],
    [['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'], 'coding_unknown'],
    [['Transfer-Encoding: chunked', 'Transfer-Encoding: identity'], 'coding_unknown'],
    [['Transfer-Encoding: identity', 'Transfer-Encoding: chunked'], 'coding_unknown'],
    [['Transfer-Encoding: chunked', 'Content-Length: 5'], 'length_with_coding'],
    [['Content-Length: 0', 'transfer-encoding: chunked'], 'length_with_coding'],
    [['Transfer-Encoding : chunked'], 'name_malformed'],
    [['Content-Length : 5'], 'name_malformed'],
    [['X: a', ' Transfer-Encoding: chunked'], 'folded_line'],
    [['X: a\nTransfer-Encoding: chunked'], 'bare_lf'],
    [['Transfer-Encoding\0: chunked'], 'control_octet'],
  ])('with %j is refused: %s', (lines, reason) => {
    expect(readRequests(post(...lines))).toMatchObject({ messages: [], reason });
  });

  test('ignores fields that only resemble framing', () => {
    expect(framingOf('Content-Lengths: 5', 'X-Transfer-Encoding: chunked', 'X-Content-Length: 5')).toEqual({
      kind: 'none',
    });
  });

  test.each(['Content_Length: 5', 'transfer_encoding: chunked'])(
    'is refused with %s, which a CGI would take for framing',
    (line) => expect(readRequests(post(line)).reason).toBe('framing_lookalike'),
  );

  test('must have no Transfer-Encoding in HTTP/1.0', () => {
    const text = 'POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n';
    expect(readRequests(text)).toMatchObject({ messages: [], reason: 'coding_in_http_1_0' });
  });

  test.each(['Content-Length: 0', 'Content-Length: 5', 'Transfer-Encoding: chunked'])(
    'is refused for CONNECT with %s',
    (line) => {
      const text = `CONNECT a:443 HTTP/1.1\r\nHost: a\r\n${line}\r\n\r\n`;
      expect(readRequests(text)).toMatchObject({ messages: [], reason: 'body_not_allowed' });
    },
  );
});

describe('after the body of an HTTP/1.1 request', () => {
  test('the next request begins at the exact octet', () => {
    const next = 'GET /next HTTP/1.1\r\nHost: a\r\n\r\n';
    const inside = 'GET /inside HTTP/1.1\r\nHost: a\r\n\r\n';
    const text = [
      `${post(`Content-Length: ${inside.length}`)}${inside}`,
      `${post('Transfer-Encoding: chunked')}${inside.length.toString(16)}\r\n${inside}\r\n0\r\n\r\n`,
      `${post()}`,
      next,
    ].join('');
    const { messages, end } = readRequests(text);
    expect(messages.map(({ start, body, complete }) => [start, body, complete])).toEqual([
      ['POST /', inside, true],
      ['POST /', inside, true],
      ['POST /', '', true],
      ['GET /next', '', true],
    ]);
    expect(end).toBe('open');
  });

  test.each([
    ['HTTP/1.1', 'Connection: close', false],
    ['HTTP/1.1', 'Connection: x, CLOSE', false],
    ['HTTP/1.1', 'Connection: x\r\nConnection: close', false],
    ['HTTP/1.1', 'Proxy-Connection: close', false],
    ['HTTP/1.1', 'Connection: keep-alive', true],
    ['HTTP/1.1', 'X: close', true],
    ['HTTP/1.0', 'X: y', false],
    ['HTTP/1.0', 'Connection: keep-alive', false],
  ])('of %s with %j another request may come: %s', (version, line, persistent) => {
    const head = requestHeadReader(LIMITS).read(octets(`GET / ${version}\r\nHost: a\r\n${line}\r\n\r\n`), 0);
    expect(head?.persistent).toBe(persistent);
  });

  test('Connection options of all fields are known in lower case', () => {
    const text = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: X-One ,, te\r\nConnection:\tKeep-Alive\r\n\r\n';
    expect(requestHeadReader(LIMITS).read(octets(text), 0)?.connectionOptions).toEqual([
      'x-one',
      'te',
      'keep-alive',
    ]);
  });

  test('a no-break space is not whitespace around a Connection option', () => {
    expect(readRequests('GET / HTTP/1.1\r\nHost: a\r\nConnection: \xa0close\r\n\r\n').reason).toBe(
      'connection_malformed',
    );
  });
});
