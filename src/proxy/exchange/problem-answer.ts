import { ERRORS, type ProxyErrorCode, type SidecarError } from '../../platform/errors.ts';
import { ERROR_FIELD } from '../streams/header-rules.ts';
import type { OwnAnswer } from '../streams/message.ts';
import { retryAfterSeconds } from './retry-after.ts';

/** The proxy's own answer to a request that it does not forward. */
interface ProblemAnswer extends OwnAnswer {
  readonly code: ProxyErrorCode;
}

/** After these, the start of the next request is unknown, or none may follow. */
const CLOSING: ReadonlySet<ProxyErrorCode> = new Set([
  'bad_request',
  'draining',
  'headers_too_large',
  'request_timeout',
  'request_too_large',
  'uri_too_long',
]);

/** RFC 9110 §15.5.2 requires a challenge with each 401. Client certificates have no scheme of their own. */
const CHALLENGE = ['www-authenticate', 'Bearer realm="token-sidecar"'];

/** RFC 9110 §15, RFC 6585 §5, RFC 5842 §7.2, for the statuses in the table of errors. */
const REASONS: Readonly<Record<(typeof ERRORS)[ProxyErrorCode]['status'], string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  408: 'Request Timeout',
  413: 'Content Too Large',
  414: 'URI Too Long',
  421: 'Misdirected Request',
  429: 'Too Many Requests',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
  508: 'Loop Detected',
};

/** Problem details (RFC 9457) of an error; its message is the `detail`, so it must hold no secret and no field value. */
export function problemOf(error: SidecarError<ProxyErrorCode>): ProblemAnswer {
  const { status, title } = ERRORS[error.code];
  const body = asciiJson({ type: 'about:blank', title, status, detail: error.message, code: error.code });
  const retryAfter = retryAfterSeconds(error);
  return {
    status,
    reason: REASONS[status],
    code: error.code,
    fields: [
      'content-type',
      'application/problem+json',
      'content-length',
      String(body.length),
      'cache-control',
      'no-store',
      ERROR_FIELD,
      error.code,
      ...(retryAfter === undefined ? [] : ['retry-after', String(retryAfter)]),
      ...(status === 401 ? CHALLENGE : []),
    ],
    body,
    closes: CLOSING.has(error.code),
  };
}

/** One byte per character, so that the length is known and any connection can carry it. */
function asciiJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[^\x20-\x7e]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
