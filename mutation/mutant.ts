import { readFileSync } from 'node:fs';
import { relative, sep } from 'node:path';

export interface Position {
  /** Both counted from 1. */
  readonly line: number;
  readonly column: number;
}

/** What became of a mutant. `outside`: not in the sample, or left out by a rule. */
export type Fate = 'noticed' | 'timedOut' | 'survived' | 'untested' | 'broken' | 'outside';

/** One change to a source file, and whether a test noticed it. */
export interface Mutant {
  /** From the project's root. */
  readonly file: string;
  readonly at: Position;
  readonly mutator: string;
  /** The text that was there, and what stood in its place; runs of white space are one space. */
  readonly original: string;
  readonly replacement: string;
  readonly fate: Fate;
}

/** As Stryker reports it. */
export interface ReportedMutant {
  readonly id: string;
  readonly fileName: string;
  readonly location: { readonly start: Position; readonly end: Position };
  readonly mutatorName: string;
  readonly replacement?: string;
  readonly status: string;
}

const FATES: Readonly<Record<string, Fate>> = {
  Killed: 'noticed',
  Timeout: 'timedOut',
  Survived: 'survived',
  NoCoverage: 'untested',
  RuntimeError: 'broken',
  CompileError: 'outside',
  Ignored: 'outside',
};

/** @throws {Error} for a status that this driver doesn't know. */
export function mutantOf(reported: ReportedMutant, root: string): Mutant {
  const fate = FATES[reported.status];
  if (fate === undefined) throw new Error(`the mutation tester reports the status ${reported.status}`);
  const { start, end } = reported.location;
  return {
    file: relative(root, reported.fileName).replaceAll(sep, '/'),
    at: start,
    mutator: reported.mutatorName,
    original: oneLine(textBetween(linesOf(reported.fileName), start, end)),
    replacement: oneLine(reported.replacement ?? ''),
    fate,
  };
}

export function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim();
}

const sources = new Map<string, readonly string[]>();

function linesOf(file: string): readonly string[] {
  let lines = sources.get(file);
  if (lines === undefined) {
    lines = readFileSync(file, 'utf8').split('\n');
    sources.set(file, lines);
  }
  return lines;
}

function textBetween(lines: readonly string[], start: Position, end: Position): string {
  const part = lines.slice(start.line - 1, end.line);
  const last = part.length - 1;
  return part
    .map((line, i) => line.slice(i === 0 ? start.column - 1 : 0, i === last ? end.column - 1 : undefined))
    .join('\n');
}
