import { SidecarError } from './errors.ts';
import { quoted } from './log/shown-text.ts';
import { PROBLEM_CODES, type ProblemCode } from './problem-codes.ts';

/** One thing wrong with the configuration. */
export interface Problem {
  /** The flag, variable or path in the file that holds it: `--listen`, `TOKEN_SIDECAR_AUTH_URL`, `routes[0].upstream`. */
  readonly key: string;
  /** The value as given. Left out if there is none, and always if it could be a secret. */
  readonly value?: string;
  /** What would be right, as a noun phrase or a short sentence. */
  readonly expected: string;
  /** The kind of problem, to be looked up; `invalid_value` or `missing_value` by default. */
  readonly code?: ProblemCode;
  /** What to do about this one, if more than its code says; a whole sentence. */
  readonly remedy?: string;
  /** The setting that an unknown name probably meant: it is not missing as well. */
  readonly meant?: string;
  /** Settings any of which would do in place of a missing one. */
  readonly instead?: readonly string[];
  /** Where it stands in the file. */
  readonly place?: Place;
}

/** A place in a file, with its line as it may be shown. */
export interface Place {
  /** The file's name as given. */
  readonly file: string;
  /** Both from 1. */
  readonly line: number;
  readonly column: number;
  readonly frame: Frame;
}

export interface Frame {
  readonly text: string;
  /** Index in `text`, and the number of characters from there: at least one. */
  readonly from: number;
  readonly length: number;
}

/** Everything that is wrong with the configuration, reported at once; ends the process with 78 (EX_CONFIG). */
export class ConfigurationError extends SidecarError<'configuration'> {
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super('configuration', problems.map(describeProblem).join('\n'));
    this.problems = problems;
  }
}

export function codeOf({ code, value }: Problem): ProblemCode {
  return code ?? (value === undefined ? 'missing_value' : 'invalid_value');
}

export function remedyOf(problem: Problem): string {
  const code = codeOf(problem);
  if (problem.remedy !== undefined) return problem.remedy;
  return code === 'missing_value' ? `Add ${problem.key.split('.').at(-1)}.` : PROBLEM_CODES[code].remedy;
}

/** `routes[0].upstream: "ftp://x": expected an http or https URL` */
export function describeProblem({ key, value, expected }: Problem): string {
  return value === undefined
    ? `${key}: expected ${expected}`
    : `${key}: ${quoted(value, key)}: expected ${expected}`;
}
