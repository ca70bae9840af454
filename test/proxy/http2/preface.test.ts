import { expect, test } from 'vitest';
import { judgePreface, PREFACE, PrefaceReader } from '../../../src/proxy/http2/preface.ts';

test('tells HTTP/2 from anything else as soon as an octet does', () => {
  for (let length = 0; length < PREFACE.length; length++) {
    expect(judgePreface(PREFACE.subarray(0, length))).toBe('partial');
  }
  expect(judgePreface(PREFACE)).toBe('http2');
  expect(judgePreface(Buffer.concat([PREFACE, Buffer.from('more')]))).toBe('http2');
  expect(judgePreface(Buffer.from('P'))).toBe('partial');
  expect(judgePreface(Buffer.from('POST / HTTP/1.1\r\n'))).toBe('other');
  expect(judgePreface(Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r!'))).toBe('other');
});

test('is read from any pieces', () => {
  const octets = Buffer.concat([PREFACE, Buffer.from('next')]);
  for (let cut = 0; cut <= octets.length; cut++) {
    const reader = new PrefaceReader();
    const first = reader.read(octets.subarray(0, cut), 0);
    expect(first).toBe(Math.min(cut, PREFACE.length));
    const second = reader.read(octets.subarray(cut), 0);
    expect(second).toBe(PREFACE.length - first);
    expect(reader.complete).toBe(true);
  }
});

test('is refused at the first octet that is not its own', () => {
  const reader = new PrefaceReader();
  expect(reader.read(Buffer.from('PRI * '), 0)).toBe(6);
  expect(reader.read(Buffer.from('HTTP/1.1'), 0)).toBe(-1);
  expect(reader.complete).toBe(false);
});
