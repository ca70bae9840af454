import { expect, it } from 'vitest';
import type { Fate, Mutant } from '../../mutation/mutant.ts';
import { verdictOn } from '../../mutation/verdict.ts';

function mutants(counts: Partial<Record<Fate, number>>): readonly Mutant[] {
  const mutant = { file: 'src/token/schedule.ts', mutator: 'BooleanLiteral', replacement: 'false' };
  return Object.entries(counts).flatMap(([fate, count]) =>
    Array.from({ length: count }, (_, i) => ({
      ...mutant,
      original: `${fate} ${i}`,
      at: { line: 1, column: 1 },
      fate: fate as Fate,
    })),
  );
}

const verdict = (counts: Partial<Record<Fate, number>>, all: boolean) =>
  verdictOn(mutants(counts), [], { all, threshold: 80 });

it.each<[Partial<Record<Fate, number>>, boolean]>([
  [{ noticed: 8, survived: 2 }, true],
  [{ noticed: 79, survived: 21 }, false],
  [{ noticed: 7, timedOut: 1, untested: 2 }, true],
])('all of them: %j meet 80 %%: %s', (counts, reached) => {
  expect(verdict(counts, true).reached).toBe(reached);
});

it.each<[Partial<Record<Fate, number>>, boolean]>([
  [{ noticed: 79, survived: 21, outside: 500 }, true],
  [{ noticed: 70, survived: 30 }, false],
  [{ noticed: 1, survived: 1 }, true],
  [{ survived: 20 }, false],
])('a part: chance explains that %j are short of 80 %%: %s', (counts, reached) => {
  const { lines, reached: really } = verdict(counts, false);
  expect(really).toBe(reached);
  expect(lines[0]).toContain('an even part');
});

it('time that was over before the first is no failure, and said loudly', () => {
  expect(verdict({}, false)).toEqual({
    lines: ['NOTHING WAS MEASURED: time was over before the tests had run unchanged'],
    reached: true,
  });
});

it('files of types alone have none', () => {
  expect(verdict({}, true)).toMatchObject({ lines: [expect.stringContaining('no mutant')], reached: true });
});

it('mutants of which none would run are a fault of the tool', () => {
  expect(verdict({ broken: 3 }, false).reached).toBe(false);
});
