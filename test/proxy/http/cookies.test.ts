import { expect, test } from 'vitest';
import { joinCookies } from '../../../src/proxy/http/fields.ts';

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
