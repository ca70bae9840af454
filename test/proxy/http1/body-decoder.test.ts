import { describe, expect, test } from 'vitest';
import { bodyDecoder } from '../../../src/proxy/http1/body-decoder.ts';
import { LIMITS, octets } from './transcript.ts';

const truncated = expect.objectContaining({ code: 'upstream_protocol_error', reason: 'truncated' });

describe('a body decoder', () => {
  test('yields slices of the chunk itself and leaves the rest to the next message', () => {
    const body = bodyDecoder('request', { kind: 'length', bytes: 5 }, LIMITS);
    const first = octets('hel');
    expect(body.read(first, 0)).toBe(first);
    expect([body.position, body.complete]).toEqual([3, false]);
    const second = octets('loGET');
    const slice = body.read(second, 0);
    expect(slice?.toString()).toBe('lo');
    expect(slice?.buffer).toBe(second.buffer);
    expect([body.position, body.complete]).toEqual([2, true]);
  });

  test('starts at the given offset', () => {
    const body = bodyDecoder('request', { kind: 'length', bytes: 2 }, LIMITS);
    expect(body.read(octets('headok'), 4)?.toString()).toBe('ok');
    expect([body.position, body.complete]).toEqual([6, true]);
  });

  test('takes nothing once complete', () => {
    for (const framing of [{ kind: 'none' }, { kind: 'length', bytes: 0 }] as const) {
      const body = bodyDecoder('request', framing, LIMITS);
      expect(body.complete).toBe(true);
      expect(body.read(octets('GET'), 1)).toBeUndefined();
      expect(body.position).toBe(1);
      body.end();
    }
  });

  test('yields the data of chunks one by one without copying', () => {
    const body = bodyDecoder('response', { kind: 'chunked' }, LIMITS);
    const chunk = octets('2\r\nhe\r\n3\r\nllo\r\n0\r\nX: y\r\n\r\nrest');
    const slices: Buffer[] = [];
    for (let at = 0; !body.complete; at = body.position) {
      const data = body.read(chunk, at);
      if (data !== undefined) slices.push(data);
    }
    expect(slices.map(String)).toEqual(['he', 'llo']);
    expect(slices.every((slice) => slice.buffer === chunk.buffer)).toBe(true);
    expect(body.trailers).toEqual(['X', 'y']);
    expect(chunk.toString('latin1', body.position)).toBe('rest');
  });

  test('is not complete when the connection ends early', () => {
    for (const framing of [{ kind: 'length', bytes: 5 }, { kind: 'chunked' }] as const) {
      const body = bodyDecoder('response', framing, LIMITS);
      body.read(octets('1\r\n'), 0);
      expect(() => body.end()).toThrowError(truncated);
    }
  });

  test('takes everything up to the end of the connection when there is no length', () => {
    const body = bodyDecoder('response', { kind: 'close' }, LIMITS);
    expect(body.read(octets('abc'), 1)?.toString()).toBe('bc');
    expect([body.position, body.complete]).toEqual([3, false]);
    body.end();
    expect(body.complete).toBe(true);
  });
});
