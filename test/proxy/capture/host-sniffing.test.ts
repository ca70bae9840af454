import { expect, it } from 'vitest';
import { sniffHost } from '../../../src/proxy/capture/host-sniffing.ts';

const MAX_FIRST_BYTES = 16_384;

const head = (...lines: readonly string[]): Buffer => Buffer.from(['GET / HTTP/1.1', ...lines].join('\r\n'));

// Of a regular expression with blanks on both sides of the name this was the cube: hours of a thread that serves nobody else.
it.each([
  ['no line end', ''],
  ['a NUL', '\0'],
  ['a bare CR', '\r '],
  ['a bare LF', '\n'],
])('for a Host field of only blanks, and %s, more bytes are awaited', (_, end) => {
  const blanks = ' '.repeat(MAX_FIRST_BYTES - 100);
  expect(sniffHost(head(`Host:${blanks}${end}`)).kind).toBe('partial');
});

it('blanks around the name in Host are ignored', () => {
  const blanks = ' \t'.repeat(4000);
  expect(sniffHost(head(`Host:${blanks}api.test${blanks}`, ''))).toEqual({
    kind: 'named',
    scheme: 'http',
    authority: 'api.test',
  });
});

it('a Host field without its line end may be incomplete', () => {
  expect(sniffHost(head('Accept: */*', 'Host: api.test')).kind).toBe('partial');
});

it('a line that looks like Host after the head is not used', () => {
  expect(sniffHost(head('Accept: */*', '', 'Host: api.test', '')).kind).toBe('nameless');
});
