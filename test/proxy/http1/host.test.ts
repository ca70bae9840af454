import { describe, expect, test } from 'vitest';
import { requestHeadReader } from '../../../src/proxy/http1/head-reader.ts';
import { LIMITS, octets, readRequests } from './transcript.ts';

describe('the Host field', () => {
  test.each([
    'a',
    'A.Example.com',
    'a.example.com.',
    'a_b-c:8080',
    '127.0.0.1:0',
    'a:65535',
    '[::1]',
    '[2001:DB8::1]:443',
    '[::ffff:1.2.3.4]',
    'a:',
    '[::1]:',
    'a,b',
    "a!$&'()*+,;=~",
    '*',
  ])('with %s is read', (host) => {
    const head = requestHeadReader(LIMITS).read(octets(`GET / HTTP/1.1\r\nhOsT: ${host}\r\n\r\n`), 0);
    expect(head?.host).toBe(host);
  });

  test.each([
    '',
    'a b',
    'a/b',
    'a?b',
    'a@b',
    'u:p@a',
    'a%2eb',
    'a:b',
    'a:65536',
    'a:000080',
    'a:80:80',
    '::1',
    '[::1',
    '[::1]x',
    '[a]',
    '[::1%25eth0]',
    'é',
  ])('with %j is refused', (host) => {
    expect(readRequests(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`).reason).toBe('host_malformed');
    expect(readRequests(`GET / HTTP/1.0\r\nHost: ${host}\r\n\r\n`).reason).toBe('host_malformed');
  });

  test.each(['1.0', '1.1'])('is refused twice in HTTP/%s, even with equal values', (version) => {
    expect(readRequests(`GET / HTTP/${version}\r\nHost: a\r\nhost: a\r\n\r\n`).reason).toBe('host_repeated');
  });

  test('is required in HTTP/1.1 and not in HTTP/1.0', () => {
    expect(readRequests('GET / HTTP/1.1\r\nX-Host: a\r\n\r\n').reason).toBe('host_missing');
    expect(readRequests('GET http://a/ HTTP/1.1\r\n\r\n').reason).toBe('host_missing');
    expect(readRequests('GET / HTTP/1.0\r\n\r\n')).toMatchObject({
      messages: [{ start: 'GET /' }],
      end: 'closed',
    });
  });
});
