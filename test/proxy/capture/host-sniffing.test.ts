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
])('a Host of nothing but blanks, and %s, is waited for', (_, end) => {
  const blanks = ' '.repeat(MAX_FIRST_BYTES - 100);
  expect(sniffHost(head(`Host:${blanks}${end}`)).kind).toBe('partial');
});

it('blanks around the name are no part of it', () => {
  const blanks = ' \t'.repeat(4000);
  expect(sniffHost(head(`Host:${blanks}api.test${blanks}`, ''))).toEqual({
    kind: 'named',
    scheme: 'http',
    authority: 'api.test',
  });
});

it('a name that is not followed by its line end may go on', () => {
  expect(sniffHost(head('Accept: */*', 'Host: api.test')).kind).toBe('partial');
});

it('what looks like a Host after the head is none', () => {
  expect(sniffHost(head('Accept: */*', '', 'Host: api.test', '')).kind).toBe('nameless');
});
