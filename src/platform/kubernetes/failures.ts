/** Words failed requests without any token, whatever a library has quoted. */

import type { RequestContext, ResponseContext } from '@kubernetes/client-node/dist/gen/http/http.js';
import { systemCodeOf } from '../errors.ts';
import { KubernetesApiError } from './api.ts';

const MAX_RETRY_AFTER_SECONDS = 60;

const MAX_EXPLANATION = 1000;

/** Describes a request without a complete answer: by the system's code, or else in our own words. */
export function unreachable(what: string, error: unknown): KubernetesApiError {
  // fetch says "fetch failed" and keeps the reason as its cause.
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  const code = systemCodeOf(cause);
  if (code === undefined) return new KubernetesApiError(`${what}: ${wordsFor(cause)}`);
  return new KubernetesApiError(`${what}: ${code}`, undefined, quotesValues(code) ? {} : { cause });
}

/** Node quotes a value that it does not accept. */
const quotesValues = (code: string): boolean => code.startsWith('ERR_INVALID_');

/** No other message is shown: for a header that fetch refuses, it is the whole header. */
function wordsFor(error: unknown): string {
  const { name } = (error ?? {}) as { readonly name?: unknown };
  if (name === 'TimeoutError') return 'no whole answer in time';
  const kind = error instanceof Error ? ` (${name})` : '';
  return fixedWordsOf(error) ?? `failed for no reason that the system has a code for${kind}`;
}

/** Fixed messages of fetch, the client and the reader of lines, which quote nothing. */
const FIXED_WORDS: readonly string[] = [
  'a line is too long',
  'bad port',
  'unknown scheme',
  'HTTP protocol is not allowed when skipTLSVerify is not set or false',
  'No command was specified for exec authProvider!',
  'Unsupported proxy type',
];

function fixedWordsOf(error: unknown): string | undefined {
  const { message } = (error ?? {}) as { readonly message?: unknown };
  return FIXED_WORDS.find((words) => words === message);
}

/** Without its cause: a plugin's output, or a parser's message about it, may contain a token. */
export function unusable(what: string, error: unknown): KubernetesApiError {
  const why = systemCodeOf(error) ?? fixedWordsOf(error);
  return new KubernetesApiError(
    `${what}: the kubeconfig or the service account cannot be used${why === undefined ? '' : `: ${why}`}`,
  );
}

/** A field's value (RFC 9110 §5.5); fetch ignores the white space around it. */
const SENDABLE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** @throws {KubernetesApiError} if a header has a line break, for example from a token pasted in two lines. */
export function refuseUnsendable(what: string, request: RequestContext): void {
  for (const [name, value] of Object.entries(request.getHeaders())) {
    if (SENDABLE.test(value.trim())) continue;
    throw new KubernetesApiError(
      `${what}: ${name} cannot be sent: there is a line break, or another character that no header may have, in the token, password or user of the kubeconfig or the service account`,
    );
  }
}

/** Most often the program is newer than the release that grants its permissions. */
const REMEDY =
  '; upgrade the release, with the chart of this version, or grant it (docs/reference/injector.md, Permissions)';

export function refused(
  what: string,
  { httpStatusCode: status, headers }: ResponseContext,
  answer: string,
): KubernetesApiError {
  const seconds = Number(headers['retry-after'] ?? Number.NaN);
  const retry = seconds >= 0 ? { retryAfterMs: Math.min(seconds, MAX_RETRY_AFTER_SECONDS) * 1000 } : {};
  const why = answer === '' ? '' : `: ${messageOfStatus(answer).slice(0, MAX_EXPLANATION)}`;
  return new KubernetesApiError(
    `${what}: status ${status}${why}${status === 403 ? REMEDY : ''}`,
    status,
    retry,
  );
}

/** The message of an object of kind Status; other bodies are shown as they are. */
function messageOfStatus(answer: string): string {
  try {
    const { message } = JSON.parse(answer) as { message?: unknown };
    return typeof message === 'string' ? message : answer;
  } catch {
    return answer;
  }
}
