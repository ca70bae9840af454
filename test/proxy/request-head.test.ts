import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ProxyLimits } from '../../src/config/config.ts';
import type { SidecarError } from '../../src/errors.ts';
import { type ExaminedRequest, examineRequest, type RequestHead } from '../../src/proxy/request-head.ts';

const LIMITS: ProxyLimits = {
  headerBytes: 200,
  headerCount: 4,
  targetBytes: 50,
  requestBodyBytes: 0,
  replayBytes: 0,
  maxInFlight: 1,
  headerTimeoutMs: 1,
  keepAliveTimeoutMs: 1,
};

function examine(head: Partial<RequestHead>): ExaminedRequest {
  return examineRequest(
    { method: 'GET', target: '/', version: '1.1', fields: ['host', 'a'], ...head },
    LIMITS,
  );
}

function codeOf(head: Partial<RequestHead>): string | undefined {
  try {
    examine(head);
    return undefined;
  } catch (error) {
    return (error as SidecarError).code;
  }
}

describe('the HTTP version', () => {
  it.each([
    ['1.1', undefined],
    ['1.0', undefined],
    ['0.9', 'bad_request'],
    ['2.0', 'bad_request'],
    ['1.2', 'bad_request'],
  ])('%s: %s', (version, code) => {
    expect(codeOf({ version })).toBe(code);
  });
});

describe('Host', () => {
  it.each([
    ['api.example.com', 'api.example.com'],
    ['API.example.com:8080', 'api.example.com'],
    ['a:', 'a'],
    ['127.0.0.1:1', '127.0.0.1'],
    ['[::1]:80', '[::1]'],
    ['under_score', 'under_score'],
  ])('%s is %s', (value, host) => {
    expect(examine({ fields: ['host', value] }).host).toBe(host);
  });

  it.each([
    '',
    'a b',
    'a,b',
    'a/b',
    'user@a',
    'a:b',
    'a:1:2',
    '::1',
    '[::1',
    '[]',
    'a:123456',
    'a\t',
    'ä',
    '%zz',
  ])('%j is refused', (value) => {
    expect(codeOf({ fields: ['host', value] })).toBe('bad_request');
  });

  it('must be there once', () => {
    expect(codeOf({ fields: [] })).toBe('bad_request');
    expect(codeOf({ fields: ['host', 'a', 'Host', 'a'] })).toBe('bad_request');
  });

  it('may be missing in HTTP/1.0, not be repeated', () => {
    expect(examine({ version: '1.0', fields: [] }).host).toBeUndefined();
    expect(codeOf({ version: '1.0', fields: ['host', 'a', 'host', 'b'] })).toBe('bad_request');
  });
});

describe('framing', () => {
  it.each([
    [[], { kind: 'none' }],
    [['content-length', '0'], { kind: 'none' }],
    [['Content-Length', '12'], { kind: 'length', bytes: 12 }],
    [['content-length', '007'], { kind: 'length', bytes: 7 }],
    [['Transfer-Encoding', 'Chunked'], { kind: 'chunked' }],
  ])('%j is %j', (fields, framing) => {
    expect(examine({ fields: ['host', 'a', ...fields] }).framing).toEqual(framing);
  });

  it.each([
    [['content-length', '5', 'transfer-encoding', 'chunked']],
    [['content-length', '5', 'content-length', '5']],
    [['content-length', '5', 'content-length', '6']],
    [['content-length', '5, 5']],
    [['content-length', '+5']],
    [['content-length', '-5']],
    [['content-length', '5.0']],
    [['content-length', '0x5']],
    [['content-length', '']],
    [['content-length', '9007199254740993']],
    [['transfer-encoding', '']],
    [['transfer-encoding', 'identity']],
    [['transfer-encoding', 'gzip, chunked']],
    [['transfer-encoding', 'chunked, chunked']],
    [['transfer-encoding', 'chunked;q=1']],
    [['transfer-encoding', 'xchunked']],
    [['transfer-encoding', 'chunked', 'transfer-encoding', 'chunked']],
  ])('%j is refused', (fields) => {
    expect(codeOf({ fields: ['host', 'a', ...fields] })).toBe('bad_request');
  });

  it('has no chunks in HTTP/1.0', () => {
    expect(codeOf({ version: '1.0', fields: ['transfer-encoding', 'chunked'] })).toBe('bad_request');
  });

  it('by a length is what the digits say, or refused', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 20 }), (value) => {
        const head = { fields: ['host', 'a', 'content-length', value] };
        if (codeOf(head) !== undefined) return;
        expect(value).toMatch(/^\d+$/);
        const { framing } = examine(head);
        expect(framing.kind === 'length' ? framing.bytes : 0).toBe(Number.parseInt(value, 10));
      }),
    );
  });
});

describe('an upgrade', () => {
  it.each<[string, Partial<RequestHead>, string | undefined]>([
    [
      'asked for',
      { fields: ['host', 'a', 'Connection', 'keep-alive, Upgrade', 'Upgrade', 'SPDY/3.1'] },
      'SPDY/3.1',
    ],
    [
      'of several protocols',
      { fields: ['host', 'a', 'connection', 'upgrade', 'upgrade', 'a, b', 'upgrade', 'c'] },
      'a, b, c',
    ],
    ['that Connection does not name', { fields: ['host', 'a', 'upgrade', 'websocket'] }, undefined],
    ['to nothing', { fields: ['host', 'a', 'connection', 'upgrade'] }, undefined],
    ['in HTTP/1.0', { version: '1.0', fields: ['connection', 'upgrade', 'upgrade', 'x'] }, undefined],
    [
      'with a body',
      { fields: ['host', 'a', 'connection', 'upgrade', 'upgrade', 'x', 'content-length', '1'] },
      undefined,
    ],
  ])('%s', (_, head, upgrade) => {
    expect(examine(head).upgrade).toBe(upgrade);
  });
});

describe('limits', () => {
  it('of the number of fields', () => {
    expect(codeOf({ fields: ['host', 'a', 'b', '', 'c', '', 'd', ''] })).toBeUndefined();
    expect(codeOf({ fields: ['host', 'a', 'b', '', 'c', '', 'd', '', 'e', ''] })).toBe('headers_too_large');
  });

  it('of the header section, counted as it is written', () => {
    const fixed = 'GET / HTTP/1.1\r\nhost: a\r\nx: \r\n\r\n'.length;
    expect(codeOf({ fields: ['host', 'a', 'x', 'y'.repeat(200 - fixed)] })).toBeUndefined();
    expect(codeOf({ fields: ['host', 'a', 'x', 'y'.repeat(201 - fixed)] })).toBe('headers_too_large');
  });

  it('of the target come first', () => {
    expect(codeOf({ target: `/${'a'.repeat(300)}` })).toBe('uri_too_long');
  });
});
