/** Every code and exit status that a user may meet, with its meaning. */

import { type CountedErrorCode, ERRORS } from '../../platform/errors.ts';
import { PROBLEM_CODES } from '../../platform/problems.ts';
import { CONFIGURATION } from './configuration.ts';
import { EXIT_STATUSES } from './exit-statuses.ts';
import type { Explanation } from './explanation.ts';
import { PROXY_ERRORS } from './proxy-errors.ts';

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
