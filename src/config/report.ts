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
  const kinds = Map.groupBy([...problems].sort(byPlace).slice(0, MAX_SHOWN), kindOf);
  const shown = [...kinds.values()].map((alike) => describe(alike, paint));
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

/** Problems with the same words are one with several places. */
function kindOf(problem: Problem): string {
  const { key, value, kind, expected, place } = problem;
  const isOfText = place !== undefined && key.startsWith(`${place.file}:`);
  return JSON.stringify(isOfText ? [key] : [codeOf(problem), expected, remedyOf(problem), value, kind]);
}

/** Further keys are only counted. */
const MAX_KEYS = 5;

function describe(alike: readonly Problem[], paint: Paint): string {
  const [problem] = alike as readonly [Problem];
  const { place } = problem;
  const isOfText = place !== undefined && problem.key === `${place.file}:${place.line}:${place.column}`;
  const keys = alike.slice(0, MAX_KEYS).map(({ key }) => key);
  const more = alike.length > MAX_KEYS ? ` and ${alike.length - MAX_KEYS} more` : '';
  const key = `${keys.join(', ')}${more}`;
  const what = isOfText ? `expected ${problem.expected}` : describeProblem({ ...problem, key });
  const head = `${paint(['red', 'bold'], `error[${codeOf(problem)}]`)}: ${paint('bold', what)}`;
  const places = alike.flatMap((one) => [one.earlier, one.place].filter((at) => at !== undefined));
  const margin = Math.max(0, ...places.map(({ line }) => String(line).length));
  const remedy = `${' '.repeat(margin + 1)}${paint('blue', '=')} ${remedyOf(problem)}`;
  return [head, ...places.flatMap((at) => frame(at, margin, paint)), remedy].join('\n');
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
    `${paint('blue', String(line).padStart(margin))} ${bar} ${text}`,
    `${empty} ${bar} ${' '.repeat(from)}${paint(['red', 'bold'], '^'.repeat(length))}`,
  ];
}
