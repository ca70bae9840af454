import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { parseAccepted, staleEntries } from '../../mutation/accepted.ts';
import type { Fate, Mutant } from '../../mutation/mutant.ts';
import { atMost, percent, scoreOf } from '../../mutation/score.ts';

async function source(text: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-mutation-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  await writeFile(join(directory, 'source.ts'), text);
  return join(directory, 'source.ts');
}

function mutant(file: string, fate: Fate, line = 1): Mutant {
  return {
    file,
    at: { line, column: 1 },
    mutator: 'EqualityOperator',
    original: 'a < b',
    replacement: 'a <= b',
    fate,
  };
}

function entry(file: string): string {
  return `- {file: ${file}, mutator: EqualityOperator, original: a < b, replacement: a <= b, reason: both are 0 or 1}`;
}

it('an accepted survivor counts on neither side, wherever it stands', async () => {
  const file = await source('\n\nif (a <\n b) x();');
  const accepted = parseAccepted(entry(file));
  const mutants = [
    mutant(file, 'survived', 3),
    mutant('other.ts', 'survived'),
    mutant('other.ts', 'noticed'),
  ];
  const score = scoreOf(mutants, accepted);
  expect(score.accepted).toEqual([mutants[0]]);
  expect(score.missed).toEqual([mutants[1]]);
  expect(percent(score)).toBe(50);
  expect(staleEntries(accepted, mutants)).toEqual([]);
});

it('code that no test reaches counts as missed, and what hung until its time was over as noticed', () => {
  const mutants = [mutant('a.ts', 'untested'), mutant('a.ts', 'timedOut'), mutant('a.ts', 'outside')];
  expect(scoreOf(mutants, [])).toMatchObject({ noticed: 1, timedOut: 1, missed: [mutants[0]] });
});

it.each<[string, string, Fate]>([
  ['the tests notice it by now', 'if (a < b) x();', 'noticed'],
  ['its text is gone', 'if (a > b) x();', 'outside'],
])('an entry is stale when %s', async (_, text, fate) => {
  const file = await source(text);
  const accepted = parseAccepted(entry(file));
  expect(staleEntries(accepted, [mutant(file, fate)])).toEqual(accepted);
});

it('an entry stands while one of several mutants of its text survives', async () => {
  const file = await source('if (a < b || a < b) x();');
  const accepted = parseAccepted(entry(file));
  expect(staleEntries(accepted, [mutant(file, 'noticed'), mutant(file, 'survived', 2)])).toEqual([]);
});

it.each([
  '- {file: a.ts, mutator: M, original: a, replacement: b}',
  "- {file: a.ts, mutator: M, original: a, replacement: b, reason: ''}",
  '- {file: a.ts, mutator: M, original: a, replacement: b, reason: r, line: 3}',
])('an entry without a reason, or with a place, is refused: %s', (text) => {
  expect(() => parseAccepted(text)).toThrow('an accepted mutant has file, mutator');
});

it('an empty list is a list', () => {
  expect(parseAccepted('# nothing yet\n')).toEqual([]);
});

it.each([
  [17, 3, 94.76],
  [850, 150, 87.08],
  [0, 0, 100],
])('a part with %i noticed and %i missed says that the whole has %f % at most', (noticed, missed, most) => {
  const group = (fate: Fate, count: number) => Array.from({ length: count }, () => mutant('a.ts', fate));
  expect(atMost(scoreOf([...group('noticed', noticed), ...group('survived', missed)], []))).toBeCloseTo(
    most,
    1,
  );
});
