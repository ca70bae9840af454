import { describe, expect, test } from 'vitest';
import { requestHeadReader } from '../../../src/proxy/http1/head-reader.ts';
import { LIMITS, octets, readRequests, readResponses, transcribe } from './transcript.ts';

const limits = { headerBytes: 200, headerCount: 5, targetBytes: 50 };

/** A request whose head has exactly `bytes` octets. */
function requestOf(bytes: number): string {
  const rest = 'GET / HTTP/1.1\r\nHost: a\r\nX: \r\n\r\n';
  return rest.replace('X: ', `X: ${'x'.repeat(bytes - rest.length)}`);
}

describe('limits of an HTTP/1.1 head', () => {
  test('allow exactly the configured number of octets', () => {
    expect(readRequests(requestOf(200), limits).messages).toHaveLength(1);
    expect(readRequests(requestOf(201), limits).reason).toBe('head_too_large');
  });

  test('do not count an empty line before the request line', () => {
    expect(readRequests(`\r\n${requestOf(200)}`, limits).messages).toHaveLength(1);
  });

  test('refuse an endless head at the limit instead of waiting', () => {
    const text = requestOf(300).slice(0, 200);
    expect(readRequests(text.slice(0, 199), limits).end).toBe('open');
    expect(readRequests(text, limits).reason).toBe('head_too_large');
  });

  test('allow exactly the configured number of octets in the target', () => {
    const withTarget = (bytes: number) => `GET /${'t'.repeat(bytes - 1)} HTTP/1.1\r\nHost: a\r\n\r\n`;
    expect(readRequests(withTarget(50), limits).messages).toHaveLength(1);
    expect(readRequests(withTarget(51), limits).reason).toBe('target_too_long');
  });

  test('blame the target if it makes the head too large', () => {
    expect(readRequests(`GET /${'t'.repeat(300)}`, limits).reason).toBe('target_too_long');
    expect(readRequests(`GET /${'t'.repeat(100)} HTTP/1.1\r\nX: ${'x'.repeat(300)}`, limits).reason).toBe(
      'target_too_long',
    );
    expect(readRequests('M'.repeat(300), limits).reason).toBe('head_too_large');
    const unended = `GET /${'t'.repeat(195)}`;
    expect(readRequests(unended, { ...limits, targetBytes: 195 }).reason).toBe('target_too_long');
    expect(readRequests(unended, { ...limits, targetBytes: 196 }).reason).toBe('head_too_large');
  });

  test('allow exactly the configured number of fields', () => {
    const withFields = (count: number) => `GET / HTTP/1.1\r\nHost: a\r\n${'X:\r\n'.repeat(count - 1)}\r\n`;
    expect(readRequests(withFields(5), limits).messages).toHaveLength(1);
    expect(readRequests(withFields(6), limits).reason).toBe('too_many_fields');
  });

  test('apply to answers too', () => {
    expect(readResponses(`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(200)}`, 'GET', limits).reason).toBe(
      'head_too_large',
    );
    expect(readResponses(`HTTP/1.1 200 OK\r\n${'X:\r\n'.repeat(6)}\r\n`, 'GET', limits).reason).toBe(
      'too_many_fields',
    );
  });

  test('are the same when the octets come one by one', () => {
    for (const text of [requestOf(200), requestOf(201), `GET /${'t'.repeat(300)}`]) {
      const pieces = [...octets(text)].map((octet) => Buffer.from([octet]));
      expect(transcribe({ kind: 'request', pieces }, limits)).toEqual(readRequests(text, limits));
    }
  });
});

describe('an HTTP/1.1 head reader', () => {
  test('distinguishes an idle connection from one amid a head', () => {
    const reader = requestHeadReader(LIMITS);
    expect(reader.started).toBe(false);
    reader.read(octets('\r\n'), 0);
    expect(reader.started).toBe(false);
    reader.read(octets('G'), 0);
    expect(reader.started).toBe(true);
    reader.read(octets('ET / HTTP/1.1\r\nHost: a\r\n\r\n'), 0);
    expect(reader.started).toBe(false);
    reader.read(octets('\r'), 0);
    expect(reader.started).toBe(true);
  });
});
