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
])('cookie crumbs: %s', (_what, fields, joined) => {
  const before = [...fields];
  expect(joinCookies(fields)).toEqual(joined);
  expect(fields).toEqual(before);
});

test('names in lower case: fields that have them already are the same array', () => {
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
])('%j: whether 100 is waited for is %s', (fields, waits) => {
  expect(expectsContinue(fields)).toBe(waits);
});
