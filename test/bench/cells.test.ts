import { describe, expect, it } from 'vitest';
import { ALL_CELLS, DEFAULT_CELLS, LARGE, MANY, PLAIN, REFERENCE } from '../../bench/cells.ts';

describe('the cells that the benchmark measures by default', () => {
  for (const dimension of ['upstream', 'payload', 'connections', 'tokenBytes', 'keepAlive'] as const) {
    it(`hold every value of ${dimension}`, () => {
      const valuesOf = (cells: typeof ALL_CELLS) => new Set(cells.map((cell) => cell[dimension]));
      expect(valuesOf(DEFAULT_CELLS)).toEqual(valuesOf(ALL_CELLS));
    });
  }

  it('hold every cell that a target is about', () => {
    expect(DEFAULT_CELLS).toEqual(expect.arrayContaining([REFERENCE, PLAIN, LARGE, MANY]));
  });

  it('can each be named', () => {
    const names = ALL_CELLS.map(({ name }) => name);
    expect(new Set(names).size).toBe(ALL_CELLS.length);
    expect(names).toEqual(expect.arrayContaining(DEFAULT_CELLS.map(({ name }) => name)));
  });
});
