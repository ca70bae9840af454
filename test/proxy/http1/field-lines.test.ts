import { describe, expect, test } from 'vitest';
import { readRequests, readResponses } from './transcript.ts';

function readField(line: string) {
  return readRequests(`GET / HTTP/1.1\r\nHost: a\r\n${line}\r\nZ: z\r\n\r\n`);
}

describe('HTTP/1.1 field lines', () => {
  test('keep order, case and repetitions', () => {
    const [message] = readRequests('GET / HTTP/1.1\r\nX: 1\r\nhOST: a\r\nx: 2\r\nX: 1\r\n\r\n').messages;
    expect(message?.fields).toEqual(['X', '1', 'hOST', 'a', 'x', '2', 'X', '1']);
  });

  test.each([
    ['X:', ['X', '']],
    ['X: ', ['X', '']],
    ['X:a', ['X', 'a']],
    ['X: \t a \tb \t ', ['X', 'a \tb']],
    ['X: a:b', ['X', 'a:b']],
    ['X: \x80\xff', ['X', '\x80\xff']],
    ["!#$%&'*+-.^_`|~09azAZ: x", ["!#$%&'*+-.^_`|~09azAZ", 'x']],
  ])('as %j are read', (line, field) => {
    expect(readField(line).messages[0]?.fields).toEqual(['Host', 'a', ...field, 'Z', 'z']);
  });

  test.each([
    [': a', 'name_malformed'],
    ['X', 'name_malformed'],
    ['X : a', 'name_malformed'],
    ['X\t: a', 'name_malformed'],
    ['X Y: a', 'name_malformed'],
    ['X(: a', 'name_malformed'],
    ['"X": a', 'name_malformed'],
    ['X\xe9: a', 'name_malformed'],
    ['X\0: a', 'control_octet'],
    ['X: a\r\n b', 'folded_line'],
    ['X: a\r\n\tb', 'folded_line'],
    [' X: a', 'folded_line'],
    ['X: a\0', 'control_octet'],
    ['X: \x0ba', 'control_octet'],
    ['X: a\x7f', 'control_octet'],
    ['X: a\x1b', 'control_octet'],
    ['X: a\rb', 'bare_cr'],
    ['X: a\nb', 'bare_lf'],
    ['X: a\nContent-Length: 5', 'bare_lf'],
    ['X: a\r\r\nb: c', 'bare_cr'],
    ['\rX: a', 'bare_cr'],
    ['Connection: a b', 'connection_malformed'],
    ['Connection: close;x', 'connection_malformed'],
    ['Connection: "close"', 'connection_malformed'],
    ['Proxy-Connection: a b', 'connection_malformed'],
  ])('as %j are refused: %s', (line, reason) => {
    expect(readField(line)).toMatchObject({ messages: [], end: 'refused', reason });
    expect(readResponses(`HTTP/1.1 200 OK\r\n${line}\r\nZ: z\r\n\r\n`)).toMatchObject({
      messages: [],
      reason,
    });
  });

  test('with two faults report the earlier one, except for line ends, which come first', () => {
    expect(readField('X : a\r\nY').reason).toBe('name_malformed');
    expect(readField('X : a\r\nY\n').reason).toBe('bare_lf');
  });
});
