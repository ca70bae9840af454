/** Whether a route fails, by the requests of its last minute: the verdict and its start time share this rule. Pure. */

import { ERRORS } from '../../platform/errors.ts';

/** The counts of one minute. */
export interface RouteMinute {
  readonly requests: number;
  readonly errorsByCode: ReadonlyMap<string, number>;
  /** Answers 500 to 599, whoever gave them. */
  readonly serverErrors: number;
  /** 401 answers to an injected token. */
  readonly refusedTokens: number;
}

export type RouteFault =
  /** Requests fail on their way; by code, the most frequent first. */
  | {
      readonly kind: 'fails';
      readonly failed: number;
      readonly codes: readonly (readonly [string, number])[];
    }
  | { readonly kind: 'refuses_tokens' }
  /** The upstream's own answers with a status of 500 or more. */
  | { readonly kind: 'answers_errors'; readonly answered: number };

/** From this fraction of a minute's requests a route counts as failing. */
const FAILING = 0.1;

/** A missing token is the credential's problem, and reported there. */
const OF_CREDENTIALS: ReadonlySet<string> = new Set(['token_unavailable']);

/** The worst fault; undefined if there is none, or no request. */
export function routeFault({
  requests,
  errorsByCode,
  serverErrors,
  refusedTokens,
}: RouteMinute): RouteFault | undefined {
  if (requests === 0) return undefined;
  const codes = [...errorsByCode].filter(([code]) => isUpstreams(code)).sort((a, b) => b[1] - a[1]);
  const failed = codes.reduce((sum, [, count]) => sum + count, 0);
  if (failed / requests >= FAILING) return { kind: 'fails', failed, codes };
  if (refusedTokens / requests >= FAILING) return { kind: 'refuses_tokens' };
  const own = [...errorsByCode].reduce((sum, [code, count]) => sum + (statusOf(code) >= 500 ? count : 0), 0);
  const answered = serverErrors - own;
  return answered / requests >= FAILING ? { kind: 'answers_errors', answered } : undefined;
}

/** Errors that are neither the app's mistake nor due to a missing token. */
function isUpstreams(code: string): boolean {
  return !OF_CREDENTIALS.has(code) && (statusOf(code) >= 500 || statusOf(code) === 0);
}

/** 0 if the connection ended without an answer. */
function statusOf(code: string): number {
  const row = (ERRORS as Readonly<Record<string, object>>)[code];
  return row !== undefined && 'status' in row ? Number(row.status) : 0;
}
