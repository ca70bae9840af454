import type { Accepted } from './accepted.ts';
import type { Mutant } from './mutant.ts';
import { byFile, byRoom, percent, type Score, scoreOf } from './score.ts';

/** The report in lines: a table by file and by room, then each survivor with its place and its change. */
export function reportLines(mutants: readonly Mutant[], accepted: readonly Accepted[]): readonly string[] {
  const measured = mutants.filter(({ fate }) => fate !== 'outside');
  const row = (name: string, score: Score) =>
    [
      `${percent(score).toFixed(1)} %`.padStart(8),
      String(score.noticed).padStart(8),
      String(score.timedOut).padStart(9),
      String(score.missed.length).padStart(7),
      String(score.accepted.length).padStart(9),
      `  ${name}`,
    ].join('');
  const whole = scoreOf(measured, accepted);
  return [
    '   score noticed  by time missed accepted',
    ...[...byFile(measured)].map(([file, group]) => row(file, scoreOf(group, accepted))),
    ...[...byRoom(measured)].map(([room, group]) => row(room.toUpperCase(), scoreOf(group, accepted))),
    '',
    ...whole.missed.map(described),
    ...whole.accepted.map((mutant) => `accepted: ${described(mutant)}`),
  ];
}

function described({ file, at, mutator, original, replacement, fate }: Mutant): string {
  const reached = fate === 'untested' ? ', which no test reaches' : '';
  return `${file}:${at.line}:${at.column} ${mutator}${reached}: ${short(original)} → ${short(replacement)}`;
}

function short(text: string): string {
  return text.length <= 100 ? text : `${text.slice(0, 97)}…`;
}
