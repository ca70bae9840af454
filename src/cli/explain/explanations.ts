/** Every code and exit status that a user may meet, with its meaning. */

import { type CountedErrorCode, ERRORS } from '../../platform/errors.ts';
import { PROBLEM_CODES } from '../../platform/problems.ts';
import { CONFIGURATION } from './configuration.ts';
import { PROXY_ERRORS } from './proxy-errors.ts';

/** The meaning of a code, for somebody who has just met it. */
export interface Explanation {
  readonly title: string;
  /** Why it is an error and what usually causes it; plain sentences. */
  readonly text: string;
  /** A typical mistake, and its correction; lines of a file or shell. */
  readonly wrong?: string;
  readonly right?: string;
  /** What to do, in one sentence. */
  readonly remedy?: string;
}

/** After sysexits.h. */
const EXIT_STATUSES: Readonly<Record<string, Explanation>> = {
  '0': {
    title: 'Success',
    text: 'The command did what it was asked for. What serves ends with 0 by SIGTERM, SIGINT and POST /quitquitquit, too: a Job whose sidecar ended with 143 would count as failed.',
  },
  '64': {
    title: 'The command line is not understood',
    text: 'A flag or command that there is not, a flag without its value, or a word that is no flag.',
    remedy: 'Read token-sidecar COMMAND --help.',
  },
  '69': {
    title: 'The identity provider, an upstream or the Kubernetes API is unavailable',
    text: 'The commands check and wait and the injector end with it when somebody does not answer; proxy does on SIGTERM where it never had a token because its provider did not answer.',
    remedy: 'Run token-sidecar check in the pod, and look at NetworkPolicies and DNS.',
  },
  '70': {
    title: 'An unexpected error',
    text: 'Something happened that was not foreseen; the stack stands on standard error.',
    remedy: 'Report it with the stack, which holds no secret.',
  },
  '77': {
    title: 'The identity provider rejected the credentials',
    text: 'The provider answered, and refused the client: a wrong or rotated secret, a client that is disabled or may not use this grant, a scope that it may not have.',
    remedy: 'Compare the mounted Secret with the client at the provider.',
  },
  '78': {
    title: 'The configuration is not valid',
    text: 'Every mistake is listed on standard error, each with a code that token-sidecar explain knows.',
    remedy: 'Correct what is listed and start again.',
  },
};

interface Chapter {
  readonly title: string;
  /** By code, or exit status. */
  readonly explanations: Readonly<Record<string, Explanation>>;
}

export const CHAPTERS: readonly Chapter[] = [
  {
    title: 'Mistakes in the configuration',
    explanations: Object.fromEntries(
      Object.entries(CONFIGURATION).map(([code, explanation]) => [
        code,
        { ...PROBLEM_CODES[code as keyof typeof PROBLEM_CODES], ...explanation },
      ]),
    ),
  },
  {
    title: 'Errors of the proxy',
    explanations: Object.fromEntries(
      Object.entries(PROXY_ERRORS).map(([code, explanation]) => [
        code,
        { title: ERRORS[code as CountedErrorCode].title, ...explanation },
      ]),
    ),
  },
  { title: 'Exit statuses', explanations: EXIT_STATUSES },
];

export function explanationOf(code: string): Explanation | undefined {
  for (const { explanations } of CHAPTERS) {
    if (Object.hasOwn(explanations, code)) return explanations[code];
  }
  return undefined;
}

export const CODES: readonly string[] = CHAPTERS.flatMap(({ explanations }) => Object.keys(explanations));
