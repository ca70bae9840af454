import { styleText } from 'node:util';
import { codeOf, describeProblem, type Place, type Problem, remedyOf } from '../platform/problems.ts';

type Style = Parameters<typeof styleText>[0];

type Paint = (style: Style, text: string) => string;

const PLAIN: Paint = (_style, text) => text;
const COLOURED: Paint = (style, text) => styleText(style, text, { validateStream: false });

/** Further problems are only counted. */
const MAX_SHOWN = 50;

export function reportProblems(problems: readonly Problem[], { colour }: { colour: boolean }): string {
  const paint = colour ? COLOURED : PLAIN;
  const shown = [...problems]
    .sort(byPlace)
    .slice(0, MAX_SHOWN)
    .map((problem) => describe(problem, paint));
  const [first] = problems;
  const code = first === undefined ? 'CODE' : codeOf(first);
  const count = problems.length === 1 ? '1 problem' : `${problems.length} problems`;
  const more = problems.length > MAX_SHOWN ? `, of which ${MAX_SHOWN} are shown` : '';
  return [...shown, `${count}${more}. To read more about one: token-sidecar explain ${code}`].join('\n\n');
}

/** Problems outside the file come first. */
function byPlace({ place: a }: Problem, { place: b }: Problem): number {
  return (a?.line ?? 0) - (b?.line ?? 0) || (a?.column ?? 0) - (b?.column ?? 0);
}

function describe(problem: Problem, paint: Paint): string {
  const { place } = problem;
  const isOfText = place !== undefined && problem.key === `${place.file}:${place.line}:${place.column}`;
  const what = isOfText ? `expected ${problem.expected}` : describeProblem(problem);
  const head = `${paint(['red', 'bold'], `error[${codeOf(problem)}]`)}: ${paint('bold', what)}`;
  const margin = place === undefined ? 0 : String(place.line).length;
  const remedy = `${' '.repeat(margin + 1)}${paint('blue', '=')} ${remedyOf(problem)}`;
  return [head, ...(place === undefined ? [] : frame(place, margin, paint)), remedy].join('\n');
}

function frame(
  { file, line, column, frame: { text, from, length } }: Place,
  margin: number,
  paint: Paint,
): string[] {
  const bar = paint('blue', '|');
  const empty = ' '.repeat(margin);
  return [
    `${empty}${paint('blue', '-->')} ${file}:${line}:${column}`,
    `${empty} ${bar}`,
    `${paint('blue', String(line))} ${bar} ${text}`,
    `${empty} ${bar} ${' '.repeat(from)}${paint(['red', 'bold'], '^'.repeat(length))}`,
  ];
}
