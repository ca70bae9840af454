import { describe, expect, it } from 'vitest';
import {
  ALL_CELLS,
  BOUND,
  type Cell,
  CLOSING,
  DEFAULT_CELLS,
  type Http1Cell,
  type Http2Cell,
  LARGE,
  MANY,
  MANY_STREAMS,
  ONE_CONNECTION,
  ONE_STREAM_EACH,
  PLAIN,
  REFERENCE,
  UPLOADS,
} from '../../bench/cells.ts';

const http1 = (cells: readonly Cell[]): Http1Cell[] => cells.filter((cell) => cell.protocol !== 'http2');
const http2 = (cells: readonly Cell[]): Http2Cell[] => cells.filter((cell) => cell.protocol === 'http2');

describe('the cells that the benchmark measures by default', () => {
  for (const dimension of ['upstream', 'payload', 'connections', 'tokenBytes', 'keepAlive'] as const) {
    it(`hold every value of ${dimension}`, () => {
      const valuesOf = (cells: readonly Cell[]) => new Set(http1(cells).map((cell) => cell[dimension]));
      expect(valuesOf(DEFAULT_CELLS)).toEqual(valuesOf(ALL_CELLS));
    });
  }

  for (const dimension of ['upstream', 'call', 'connections', 'streams'] as const) {
    it(`hold every value of ${dimension} of HTTP/2`, () => {
      const valuesOf = (cells: readonly Cell[]) => new Set(http2(cells).map((cell) => cell[dimension]));
      expect(valuesOf(DEFAULT_CELLS)).toEqual(valuesOf(ALL_CELLS));
    });
  }

  it('take longer over latency where a target is about it, and nowhere else', () => {
    const longer = http1(ALL_CELLS).filter(({ latencyWeight }) => latencyWeight > 1);
    const names = (cells: readonly Cell[]) => cells.map(({ name }) => name).toSorted();
    expect(names(longer)).toEqual(names([REFERENCE, BOUND, ...CLOSING]));
  });

  it('hold every cell that a target is about', () => {
    const http1Cells = [REFERENCE, PLAIN, LARGE, MANY, ...CLOSING, ...UPLOADS];
    const judged = [...http1Cells, ...ONE_CONNECTION, ...ONE_STREAM_EACH, MANY_STREAMS];
    expect(DEFAULT_CELLS).toEqual(expect.arrayContaining(judged));
  });

  it('can each be named', () => {
    const names = ALL_CELLS.map(({ name }) => name);
    expect(new Set(names).size).toBe(ALL_CELLS.length);
    expect(names).toEqual(expect.arrayContaining(DEFAULT_CELLS.map(({ name }) => name)));
  });
});
