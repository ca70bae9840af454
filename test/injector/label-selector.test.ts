import { expect, it } from 'vitest';
import { type LabelSelector, selects } from '../../src/injector/label-selector.ts';

const expression = (operator: string, ...values: string[]): LabelSelector => ({
  matchExpressions: [{ key: 'team', operator, values }],
});

it.each<[string, LabelSelector, Record<string, string>, boolean]>([
  ['no condition', {}, {}, true],
  ['a label that is there', { matchLabels: { team: 'a' } }, { team: 'a' }, true],
  ['a label of another value', { matchLabels: { team: 'a' } }, { team: 'b' }, false],
  ['In, in it', expression('In', 'a', 'b'), { team: 'b' }, true],
  ['In, not in it', expression('In', 'a'), { team: 'b' }, false],
  ['In, without the label', expression('In', 'a'), {}, false],
  ['NotIn, in it', expression('NotIn', 'a'), { team: 'a' }, false],
  ['NotIn, not in it', expression('NotIn', 'a'), { team: 'b' }, true],
  ['NotIn, without the label', expression('NotIn', 'a'), {}, true],
  ['In, without values', { matchExpressions: [{ key: 'team', operator: 'In' }] }, { team: 'a' }, false],
  ['NotIn, without values', { matchExpressions: [{ key: 'team', operator: 'NotIn' }] }, {}, false],
  ['NotIn, with an empty list', expression('NotIn'), { team: 'a' }, false],
  ['Exists', expression('Exists'), { team: '' }, true],
  ['Exists, without the label', expression('Exists'), {}, false],
  ['DoesNotExist', expression('DoesNotExist'), {}, true],
  ['DoesNotExist, with the label', expression('DoesNotExist'), { team: 'a' }, false],
  ['an operator that nobody knows', expression('Resembles', 'a'), { team: 'a' }, false],
  ['all conditions have to hold', { ...expression('Exists'), matchLabels: { x: 'y' } }, { team: 'a' }, false],
])('%s', (_, selector, labels, isSelected) => {
  expect(selects(selector, labels)).toBe(isSelected);
});
