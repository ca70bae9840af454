import { expect, test } from 'vitest';
import { expectsContinue, joinCookies, lowerCaseNames } from '../../../src/proxy/http/fields.ts';

test.each<[string, string[], string[]]>([
  ['none', ['a', 'cookie', 'b', '2'], ['a', 'cookie', 'b', '2']],
  ['one', ['cookie', 'a=1'], ['cookie', 'a=1']],
  [
    'several, among others',
    ['x', '1', 'cookie', 'a=1', 'y', '2', 'cookie', 'b=2', 'cookie', 'c=3'],
    ['x', '1', 'cookie', 'a=1; b=2; c=3', 'y', '2'],
  ],
])('the cookie fields of an HTTP/2 request are joined: %s', (_what, fields, joined) => {
  const before = [...fields];
  expect(joinCookies(fields)).toEqual(joined);
  expect(fields).toEqual(before);
});

test('field names in lower case: an array that has them already is returned itself', () => {
  const fields = ['Content-Type', 'Text/Plain', 'x-a', 'B'];
  expect(lowerCaseNames(fields)).toEqual(['content-type', 'Text/Plain', 'x-a', 'B']);
  const already = ['content-type', 'Text/Plain'];
  expect(lowerCaseNames(already)).toBe(already);
});

test.each([
  [['expect', '100-continue'], true],
  [['Expect', '100-Continue'], true],
  [['expect', 'something', 'expect', '100-continue'], true],
  [['expect', 'something'], false],
  [['x-expect', '100-continue'], false],
  [[], false],
])('for %j, waiting for 100-continue is %s', (fields, waits) => {
  expect(expectsContinue(fields)).toBe(waits);
});
