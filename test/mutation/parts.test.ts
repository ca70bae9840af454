import { expect, it } from 'vitest';
import { MAX_FILES, partsOf } from '../../mutation/parts.ts';

const few = ['src/token/a.ts', 'src/proxy/a.ts', 'src/platform/x509/a.ts'];
const many = [
  ...few,
  ...Array.from({ length: 2 * MAX_FILES }, (_, n) => `src/proxy/${n}.ts`),
  'src/issuer/last.ts',
];

it('few files are measured together, whatever rooms they are of', () => {
  expect(partsOf(few, { seed: '1', evenPart: false })).toEqual({ parts: [few], all: true });
  expect(partsOf([], { seed: '1', evenPart: true })).toEqual({ parts: [], all: true });
});

it('many come room by room, and of a large room no more at once than the tool takes', () => {
  const { parts, all } = partsOf(many, { seed: '1', evenPart: false });
  expect(all).toBe(true);
  expect(parts.flat().toSorted()).toEqual(many.toSorted());
  expect(parts.map(({ length }) => length)).toEqual([1, MAX_FILES, MAX_FILES, 1, 1, 1]);
});

it('an even part is of as many files of each room as one run takes, drawn by the seed', () => {
  const { parts, all } = partsOf(many, { seed: '1', evenPart: true });
  expect(all).toBe(false);
  expect(parts.map(({ length }) => length)).toEqual([1, MAX_FILES, 1, 1]);
  expect(partsOf(many, { seed: '1', evenPart: true }).parts).toEqual(parts);
  expect(partsOf(many, { seed: '2', evenPart: true }).parts).not.toEqual(parts);
});
