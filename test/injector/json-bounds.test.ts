import { expect, it } from 'vitest';
import { beyondJsonBounds } from '../../src/injector/admission.ts';

const nested = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`;
/** A list and what is in it: so many values. */
const values = (count: number): string =>
  `[${Array(count - 1)
    .fill('1')
    .join(',')}]`;

it.each([
  ['as deep as may be', nested(64)],
  ['as many values as may be', values(200_000)],
  ['lists and objects one after another', `[${Array(100).fill('[{}]').join(',')}]`],
  ['brackets and commas in a text', JSON.stringify(['[{,'.repeat(100_000)])],
  ['a text that ends in a backslash', JSON.stringify(['\\', '"', '["'.repeat(100)])],
  ['a text without an end', `"${nested(65)}`],
  ['a text that ends within an escape', '"\\'],
  ['nothing', ''],
])('%s is within bounds', (_, json) => {
  expect(beyondJsonBounds(Buffer.from(json))).toBeUndefined();
});

it.each([
  ['one level more', nested(65), 'levels'],
  ['one level more, of objects', '{"a":'.repeat(65), 'levels'],
  ['one value more', values(200_001), 'values'],
  ['one object more', `[${Array(100_000).fill('{}').join(',')}]`, 'values'],
  ['depth behind a text', `["\\\\",${nested(64)}]`, 'levels'],
  ['depth behind a text with a quote in it', `["\\"]",${nested(64)}]`, 'levels'],
])('%s is beyond them', (_, json, what) => {
  expect(beyondJsonBounds(Buffer.from(json))).toContain(what);
});
