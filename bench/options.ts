import { parseArgs } from 'node:util';
import { ALL_CELLS, type Cell, DEFAULT_CELLS } from './cells.ts';
import type { Effort } from './measure-cell.ts';
import { ALL_PROXIES } from './proxies/all.ts';
import type { ProxyKind } from './proxies/proxy.ts';

export interface Options {
  readonly kinds: readonly ProxyKind[];
  readonly cells: readonly Cell[];
  readonly effort: Effort;
  readonly starts: number;
  readonly build: boolean;
  /** Everything a reader of the results expects, measured for long enough: such a run may be published. */
  readonly isWhole: boolean;
}

export const USAGE = `npm run bench -- [FLAGS]
  --only NAMES        proxies, by commas: ${ALL_PROXIES.map(({ name }) => name).join(', ')}
  --cell NAMES        cells, by commas: tls-small-32, plain-large-256-4ktoken-close, h2-plain-unary-1x32, …
                      a name that ends in * is each that begins so, of those that would be measured: 'h2-*'
  --full              the whole matrix (${ALL_CELLS.length} cells) instead of ${DEFAULT_CELLS.length} cells
  --seconds N         of load for each figure; default 1
  --repetitions N     of which the median is taken; default 9
  --starts N          of which the median time to listening is taken; default 10
  --smoke             one second, one repetition, two starts: to see that it works
  --no-build          measure dist/ as it is
`;

/** @throws {Error} naming the flag that is wrong. */
export function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: 'string' },
      cell: { type: 'string' },
      full: { type: 'boolean', default: false },
      seconds: { type: 'string' },
      repetitions: { type: 'string' },
      starts: { type: 'string' },
      smoke: { type: 'boolean', default: false },
      'no-build': { type: 'boolean', default: false },
    },
  });
  const { smoke } = values;
  const seconds = wholeNumber('seconds', values.seconds ?? '1', 1, 600);
  const repetitions = wholeNumber('repetitions', values.repetitions ?? (smoke ? '1' : '9'), 1, 99);
  const starts = wholeNumber('starts', values.starts ?? (smoke ? '2' : '10'), 0, 1000);
  return {
    kinds: pick('only', values.only, ALL_PROXIES) ?? ALL_PROXIES,
    cells: pickCells(values.cell, values.full ? ALL_CELLS : DEFAULT_CELLS),
    effort: { seconds, repetitions },
    starts,
    build: !values['no-build'],
    isWhole: values.only === undefined && values.cell === undefined && repetitions >= 9 && starts >= 10,
  };
}

function pickCells(given: string | undefined, otherwise: readonly Cell[]): readonly Cell[] {
  if (given === undefined) return otherwise;
  return given.split(',').flatMap((name) => {
    const many = name.endsWith('*')
      ? otherwise.filter((cell) => cell.name.startsWith(name.slice(0, -1)))
      : [];
    return many.length > 0 ? many : (pick('cell', name, ALL_CELLS) ?? []);
  });
}

function pick<T extends { readonly name: string }>(
  flag: string,
  given: string | undefined,
  from: readonly T[],
): readonly T[] | undefined {
  return given?.split(',').map((name) => {
    const found = from.find((each) => each.name === name);
    if (found === undefined) {
      const names = from.map((each) => each.name).join(', ');
      throw new Error(`--${flag} names ${JSON.stringify(name)}; it must be of ${names}`);
    }
    return found;
  });
}

function wholeNumber(flag: string, text: string, least: number, most: number): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= least && value <= most)) {
    throw new Error(
      `--${flag} is ${JSON.stringify(text)}; it must be a whole number from ${least} to ${most}`,
    );
  }
  return value;
}
