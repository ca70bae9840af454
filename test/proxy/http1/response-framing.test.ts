import { describe, expect, test } from 'vitest';
import { responseHeadReader } from '../../../src/proxy/http1/head-reader.ts';
import { frameResponse } from '../../../src/proxy/http1/heads.ts';
import { LIMITS, octets, readResponses } from './transcript.ts';

function framingOf(requestMethod: string, head: string) {
  const parsed = responseHeadReader(LIMITS).read(octets(`HTTP/1.1 ${head}\r\n\r\n`), 0);
  return parsed === undefined ? undefined : frameResponse(parsed, requestMethod);
}

describe('the framing of an HTTP/1.1 answer (RFC 9112 §6.3)', () => {
  test.each([
    ['GET', '200 OK', { kind: 'close' }],
    ['GET', '200 OK\r\nConnection: keep-alive', { kind: 'close' }],
    ['GET', '200 OK\r\nContent-Length: 3', { kind: 'length', bytes: 3 }],
    ['GET', '200 OK\r\nTransfer-Encoding: chunked', { kind: 'chunked' }],
    ['POST', '500 X\r\nContent-Length: 0', { kind: 'length', bytes: 0 }],
    ['HEAD', '200 OK', { kind: 'none' }],
    ['HEAD', '200 OK\r\nContent-Length: 3', { kind: 'none' }],
    ['HEAD', '200 OK\r\nTransfer-Encoding: chunked', { kind: 'none' }],
    ['GET', '100 Continue', { kind: 'none' }],
    ['GET', '103 Early Hints\r\nLink: a', { kind: 'none' }],
    ['GET', '204 No Content', { kind: 'none' }],
    ['GET', '204 No Content\r\nContent-Length: 0', { kind: 'none' }],
    ['GET', '204 No Content\r\nConnection: close', { kind: 'none' }],
    ['GET', '204 No Content\r\nContent-Length: 3', { kind: 'none' }],
    ['GET', '204 No Content\r\nTransfer-Encoding: chunked', { kind: 'none' }],
    ['GET', '304 Not Modified\r\nContent-Length: 3', { kind: 'none' }],
    ['GET', '304 Not Modified\r\nTransfer-Encoding: chunked', { kind: 'none' }],
    ['GET', '205 Reset Content\r\nContent-Length: 0', { kind: 'length', bytes: 0 }],
    ['GET', '205 Reset Content\r\nTransfer-Encoding: chunked', { kind: 'chunked' }],
    ['GET', '101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x', { kind: 'tunnel' }],
    ['CONNECT', '200 OK', { kind: 'tunnel' }],
    ['CONNECT', '407 No\r\nContent-Length: 3', { kind: 'length', bytes: 3 }],
  ])('to %s is %j', (requestMethod, head, framing) => {
    expect(framingOf(requestMethod, head)).toEqual(framing);
  });

  test.each([
    ['GET', '100 Continue\r\nContent-Length: 3', 'body_not_allowed'],
    ['GET', '103 Early Hints\r\nTransfer-Encoding: chunked', 'body_not_allowed'],
    ['GET', '101 Switching Protocols\r\nContent-Length: 3', 'body_not_allowed'],
    ['GET', '205 Reset Content\r\nContent-Length: 3', 'body_not_allowed'],
    ['CONNECT', '200 OK\r\nContent-Length: 3', 'body_not_allowed'],
    ['GET', '100 Continue\r\nConnection: close', 'interim_closes'],
    ['GET', '200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked', 'length_with_coding'],
    ['HEAD', '200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked', 'length_with_coding'],
    ['GET', '200 OK\r\nContent-Length: 3\r\nContent-Length: 4', 'length_repeated'],
    ['GET', '200 OK\r\nContent-Length: 3\r\nContent-Length: 3, 3', 'length_malformed'],
    ['GET', '200 OK\r\nContent-Length: 3, 3', 'length_malformed'],
    ['GET', '200 OK\r\nTransfer-Encoding: gzip', 'coding_unknown'],
    ['GET', '200 OK\r\nTransfer-Encoding: gzip, chunked', 'coding_unknown'],
  ])('to %s with %j is refused: %s', (requestMethod, head, reason) => {
    expect(() => framingOf(requestMethod, head)).toThrowError(
      expect.objectContaining({ code: 'upstream_protocol_error', reason }),
    );
  });

  test('has a repeated or zero-padded Content-Length written once and plainly', () => {
    const text = '200 OK\r\nContent-Length: 003\r\nX: y\r\ncontent-length: 3\r\nContent-Length: 03\r\nZ: 0';
    expect(framingOf('GET', text)).toEqual({ kind: 'length', bytes: 3 });
    const head = responseHeadReader(LIMITS).read(octets(`HTTP/1.1 ${text}\r\n\r\n`), 0);
    expect(head?.fields).toEqual(['Content-Length', '3', 'X', 'y', 'Z', '0']);
  });

  test('must have no Transfer-Encoding in HTTP/1.0', () => {
    const text = 'HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n';
    expect(readResponses(text)).toMatchObject({ messages: [], reason: 'coding_in_http_1_0' });
  });

  test('lets interim answers precede the final one', () => {
    const text =
      'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 X\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
    const { messages } = readResponses(text);
    expect(messages.map(({ start, body, complete }) => [start, body, complete])).toEqual([
      ['100 Continue', '', true],
      ['103 X', '', true],
      ['200 OK', 'ok', true],
    ]);
  });

  test('leaves octets after 101 to the other protocol', () => {
    expect(readResponses('HTTP/1.1 101 X\r\nUpgrade: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n')).toMatchObject({
      messages: [{ start: '101 X', complete: true }],
      end: 'tunnel',
    });
  });

  test('without a length ends with the connection', () => {
    expect(readResponses('HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n')).toMatchObject({
      messages: [{ body: 'HTTP/1.1 200 OK\r\n\r\n', complete: true }],
      end: 'closed',
    });
  });
});
