import { describe, expect, test } from 'vitest';
import { requestHeadReader } from '../../../src/proxy/http1/head-reader.ts';
import { LIMITS, octets, readRequests } from './transcript.ts';

function head(line: string, host = 'a') {
  return requestHeadReader(LIMITS).read(octets(`${line}\r\nHost: ${host}\r\n\r\n`), 0);
}

describe('an HTTP/1.1 request line', () => {
  test.each([
    ['GET / HTTP/1.1', 'GET', '/', 1, 'origin'],
    ['GET / HTTP/1.0', 'GET', '/', 0, 'origin'],
    ['M-SEARCH /a?b=/%20 HTTP/1.1', 'M-SEARCH', '/a?b=/%20', 1, 'origin'],
    ['get / HTTP/1.1', 'get', '/', 1, 'origin'],
    ['patchX / HTTP/1.1', 'patchX', '/', 1, 'origin'],
    [`${'M'.repeat(32)} / HTTP/1.1`, 'M'.repeat(32), '/', 1, 'origin'],
    ['VERSION_2 //x HTTP/1.1', 'VERSION_2', '//x', 1, 'origin'],
    ['OPTIONS * HTTP/1.1', 'OPTIONS', '*', 1, 'asterisk'],
    ['GET http://a/b HTTP/1.1', 'GET', 'http://a/b', 1, 'absolute'],
    ['GET HTTP://[::1]:80?q HTTP/1.1', 'GET', 'HTTP://[::1]:80?q', 1, 'absolute'],
    ['CONNECT a.example:443 HTTP/1.1', 'CONNECT', 'a.example:443', 1, 'authority'],
  ])('with %s is read', (line, method, target, minorVersion, targetForm) => {
    expect(head(line)).toMatchObject({ method, target, minorVersion, targetForm });
  });

  test.each([
    [' / HTTP/1.1', 'method_malformed'],
    ['head / HTTP/1.1', 'method_lookalike'],
    ['Trace / HTTP/1.1', 'method_lookalike'],
    ['connecT a:443 HTTP/1.1', 'method_lookalike'],
    ['GET http://a,b/ HTTP/1.1', 'target_malformed'],
    ['CONNECT a,b:443 HTTP/1.1', 'target_malformed'],
    ['G@T / HTTP/1.1', 'method_malformed'],
    ['GET\t/ HTTP/1.1', 'method_malformed'],
    ['GET', 'method_malformed'],
    [`${'M'.repeat(33)} / HTTP/1.1`, 'method_malformed'],
    ['GET  / HTTP/1.1', 'target_malformed'],
    ['GET ', 'target_malformed'],
    ['GET /#f HTTP/1.1', 'target_octet'],
    ['GET /\\ HTTP/1.1', 'target_octet'],
    ['GET /\t HTTP/1.1', 'target_octet'],
    ['GET /\xe9 HTTP/1.1', 'target_octet'],
    ['GET a HTTP/1.1', 'target_malformed'],
    ['GET * HTTP/1.1', 'target_malformed'],
    ['GET ?q HTTP/1.1', 'target_malformed'],
    ['GET a:443 HTTP/1.1', 'target_malformed'],
    ['GET http:///x HTTP/1.1', 'target_malformed'],
    ['GET http://u@a/ HTTP/1.1', 'target_malformed'],
    ['GET http://a:b/ HTTP/1.1', 'target_malformed'],
    ['CONNECT / HTTP/1.1', 'target_malformed'],
    ['CONNECT a HTTP/1.1', 'target_malformed'],
    ['CONNECT http://a:80 HTTP/1.1', 'target_malformed'],
    ['GET /', 'version_unsupported'],
    ['GET / ', 'version_unsupported'],
    ['GET /  HTTP/1.1', 'version_unsupported'],
    ['GET / HTTP/1.1 ', 'version_unsupported'],
    ['GET / HTTP/1.10', 'version_unsupported'],
    ['GET / HTTP/1.2', 'version_unsupported'],
    ['GET / HTTP/0.9', 'version_unsupported'],
    ['GET / HTTP/2.0', 'version_unsupported'],
    ['GET / http/1.1', 'version_unsupported'],
    ['GET /a b HTTP/1.1', 'version_unsupported'],
  ])('as %j is refused: %s', (line, reason) => {
    expect(readRequests(`${line}\r\nHost: a\r\n\r\n`)).toMatchObject({
      messages: [],
      end: 'refused',
      reason,
    });
  });

  test.each([
    ['GET / HTTP/1.1\nHost: a\n\n', 'bare_lf'],
    ['GET / HTTP/1.1\rHost: a\r\n\r\n', 'bare_cr'],
    ['GET / HTTP/1.1\r\r\nHost: a\r\n\r\n', 'bare_cr'],
    ['GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n', 'control_octet'],
    ['\x16\x03\x01\x02', 'control_octet'],
    ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'version_unsupported'],
  ])('of another version, as %j, is refused: %s', (text, reason) => {
    expect(readRequests(text)).toMatchObject({ messages: [], end: 'refused', reason });
  });
});

describe('a first line that is not a request is refused before more comes', () => {
  test.each([
    ['GET /\r\n', 'version_unsupported'],
    ['EHLO mail.example.com\r\n', 'version_unsupported'],
    ['SSH-2.0-OpenSSH_9.2\r\n', 'method_malformed'],
    ['HTTP/1.1 200 OK\r\n', 'method_malformed'],
    ['PRI * HTTP/2.0\r\n', 'version_unsupported'],
    ['\r\n\r\n', 'empty_line_before_start'],
    ['\r\nquit\r\n', 'method_malformed'],
    [`GET /${'x'.repeat(9000)} HTTP/1.1\r\n`, 'target_too_long'],
  ])('%j: %s', (text, reason) => {
    expect(readRequests(text)).toMatchObject({ messages: [], end: 'refused', reason });
  });
});

describe('empty lines before an HTTP/1.1 request line', () => {
  const request = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';

  test('are ignored if there is one before each request', () => {
    const { messages, end } = readRequests(`\r\n${request}\r\n${request}`);
    expect(messages.map((message) => message.start)).toEqual(['GET /', 'GET /']);
    expect(end).toBe('open');
  });

  test.each([
    [`\r\n\r\n${request}`, 'empty_line_before_start'],
    [`\n${request}`, 'bare_lf'],
    [`\r${request}`, 'bare_cr'],
    [` \r\n${request}`, 'method_malformed'],
  ])('as in %j are refused: %s', (text, reason) => {
    expect(readRequests(text)).toMatchObject({ messages: [], end: 'refused', reason });
  });
});
