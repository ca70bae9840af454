import { describe, expect, test } from 'vitest';
import { responseHeadReader } from '../../../src/proxy/http1/head-reader.ts';
import { LIMITS, octets, readResponses } from './transcript.ts';

function head(text: string) {
  return responseHeadReader(LIMITS).read(octets(text), 0);
}

describe('an HTTP/1.1 status line', () => {
  test.each([
    ['HTTP/1.1 200 OK', 200, 'OK', 1],
    ['HTTP/1.0 404 Not Found', 404, 'Not Found', 0],
    ['HTTP/1.1 200 ', 200, '', 1],
    ['HTTP/1.1 200', 200, '', 1],
    ['HTTP/1.1 999 \xe9\t!', 999, '\xe9\t!', 1],
  ])('as %j is read', (line, status, reason, minorVersion) => {
    expect(head(`${line}\r\nX: y\r\n\r\n`)).toMatchObject({
      status,
      reason,
      minorVersion,
      fields: ['X', 'y'],
    });
  });

  test.each([
    ['HTTP/1.1  200 OK', 'status_malformed'],
    ['HTTP/1.1 099 X', 'status_malformed'],
    ['HTTP/1.1 20 X', 'status_malformed'],
    ['HTTP/1.1 2x0 X', 'status_malformed'],
    ['HTTP/1.1 ', 'status_malformed'],
    ['HTTP/1.1 2000 X', 'reason_malformed'],
    ['HTTP/1.1 200\tOK', 'reason_malformed'],
    ['HTTP/1.1 200OK', 'reason_malformed'],
    ['HTTP/1.1', 'version_unsupported'],
    ['HTTP/2 200 OK', 'version_unsupported'],
    ['HTTP/1.2 200 OK', 'version_unsupported'],
    ['http/1.1 200 OK', 'version_unsupported'],
    [' HTTP/1.1 200 OK', 'version_unsupported'],
    ['ICY 200 OK', 'version_unsupported'],
    ['\r\nHTTP/1.1 200 OK', 'empty_line_before_start'],
    ['HTTP/1.1 200 OK\x07', 'control_octet'],
    ['\0', 'http2_answer'],
    ['\x01', 'control_octet'],
    ['HTTP/1.1 200 OK\rX', 'bare_cr'],
    ['HTTP/1.1 200 OK\nX: y', 'bare_lf'],
  ])('as %j is refused: %s', (line, reason) => {
    expect(readResponses(`${line}\r\nX: y\r\n\r\n`)).toMatchObject({ messages: [], reason });
  });

  test('is refused after an empty line, which a wrongly framed body leaves', () => {
    expect(readResponses('\r\n\r\nHTTP/1.1 200 OK\r\n\r\n').reason).toBe('empty_line_before_start');
  });
});

describe('a first line that is not an answer is refused before more comes', () => {
  test.each([
    ['SSH-2.0-OpenSSH_9.2\r\n', 'version_unsupported'],
    ['220 mail.example.com ESMTP\r\n', 'version_unsupported'],
    ['GET / HTTP/1.1\r\n', 'version_unsupported'],
    ['HTTP/1.1 OK\r\n', 'status_malformed'],
    ['\r\n', 'empty_line_before_start'],
  ])('%j: %s', (text, reason) => {
    expect(readResponses(text)).toMatchObject({ messages: [], end: 'refused', reason });
  });
});

describe('an HTTP/1.1 answer', () => {
  test.each([
    ['HTTP/1.1 200 OK', true],
    ['HTTP/1.1 200 OK\r\nConnection: close', false],
    ['HTTP/1.0 200 OK', false],
    ['HTTP/1.0 200 OK\r\nConnection: Keep-Alive', true],
    ['HTTP/1.0 200 OK\r\nConnection: keep-alive, close', false],
    ['HTTP/1.1 204 No Content', true],
    ['HTTP/1.1 204 No Content\r\nContent-Length: 0', true],
    ['HTTP/1.1 204 No Content\r\nContent-Length: 2', false],
    ['HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked', false],
  ])('with %j lets another follow on the connection: %s', (text, persistent) => {
    expect(head(`${text}\r\n\r\n`)?.persistent).toBe(persistent);
  });

  test('may have a Host field, which is ignored', () => {
    expect(head('HTTP/1.1 200 OK\r\nHost: a b\r\nHost: c\r\n\r\n')).toMatchObject({
      status: 200,
      host: undefined,
    });
  });
});
