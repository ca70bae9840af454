import { SidecarError } from '../errors.ts';

/** One thing wrong with the configuration. */
export interface Problem {
  /** The flag, variable or path in the file that holds it: `--listen`, `TOKEN_SIDECAR_AUTH_URL`, `routes[0].upstream`. */
  readonly key: string;
  /** The value as it was given. Left out where there is none, and always where it could be a secret. */
  readonly value?: string;
  /** What would be right, as a noun phrase or a short sentence. */
  readonly expected: string;
}

/** Everything that is wrong with the configuration, reported at once; ends the process with 78 (EX_CONFIG). */
export class ConfigurationError extends SidecarError<'configuration'> {
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super('configuration', problems.map(describeProblem).join('\n'));
    this.problems = problems;
  }
}

/** `routes[0].upstream: "ftp://x": expected an http or https URL` */
export function describeProblem({ key, value, expected }: Problem): string {
  return value === undefined
    ? `${key}: expected ${expected}`
    : `${key}: ${JSON.stringify(value)}: expected ${expected}`;
}
