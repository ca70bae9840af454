import { expect, it } from 'vitest';
import { quantity } from '../../src/injector/pod/annotations.ts';

it.each([
  ['0', 0],
  ['2', 2],
  ['0.5', 0.5],
  ['10n', 1e-8],
  ['10u', 1e-5],
  ['10m', 0.01],
  ['3k', 3e3],
  ['3M', 3e6],
  ['3G', 3e9],
  ['3T', 3e12],
  ['3P', 3e15],
  ['3E', 3e18],
  ['3Ki', 3072],
  ['3Mi', 3_145_728],
  ['3Gi', 3 * 2 ** 30],
  ['3Ti', 3 * 2 ** 40],
  ['3Pi', 3 * 2 ** 50],
  ['3Ei', 3 * 2 ** 60],
  ['1e+08', 1e8],
  ['1E3', 1e3],
  ['15e-1', 1.5],
])('%s is an amount of %s', (text, amount) => {
  expect(quantity.parse(text)?.text).toBe(text);
  expect(quantity.parse(text)?.amount).toBeCloseTo(amount, 12);
});

it.each([
  ...[
    '',
    'm',
    '-1',
    '+1',
    ' 1',
    '1 ',
    '1.',
    '.5',
    '1.5.5',
    '1,5',
    '1mm',
    '1ki',
    '1i',
    '1mi',
    '1K',
    'x1',
    '1x5',
  ],
  ...['1e', '1e+', '1e1234', '1e3Ki', '1Kie3', '1234567890123456', `1.${'1'.repeat(21)}`],
])('%j is none', (text) => {
  expect(quantity.parse(text)).toBeUndefined();
});
