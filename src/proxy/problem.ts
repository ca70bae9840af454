import { ERRORS, type ProxyErrorCode, type SidecarError } from '../errors.ts';
import { TokenUnavailable } from '../token/token-unavailable.ts';
import { ERROR_FIELD } from './header-rules.ts';

/** The proxy's own answer to a request that it does not forward. */
export interface Problem {
  readonly status: number;
  readonly code: ProxyErrorCode;
  /** Content-type, content-length and the rest, without connection options. */
  readonly fields: readonly string[];
  /** ASCII JSON. */
  readonly body: string;
  /** The connection cannot, or must not, carry another request. */
  readonly closes: boolean;
}

/** After these, where the next request starts is unknown, or none may follow. */
const CLOSING: ReadonlySet<ProxyErrorCode> = new Set([
  'bad_request',
  'draining',
  'headers_too_large',
  'request_too_large',
  'uri_too_long',
]);

/** Problem details (RFC 9457) of an error; its message is the `detail`, so it must hold no secret and no field value. */
export function problemOf(error: SidecarError<ProxyErrorCode>): Problem {
  const { status, title } = ERRORS[error.code];
  const body = asciiJson({ type: 'about:blank', title, status, detail: error.message, code: error.code });
  const retryAfter = retryAfterSeconds(error);
  return {
    status,
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
    ],
    body,
    closes: CLOSING.has(error.code),
  };
}

/** The whole message, for a connection that carries no request to answer any more: it closes after this. */
export function problemMessage(problem: Problem, reason: string): string {
  let head = `HTTP/1.1 ${problem.status} ${reason}\r\n`;
  for (let index = 0; index < problem.fields.length; index += 2) {
    head += `${problem.fields[index]}: ${problem.fields[index + 1]}\r\n`;
  }
  return `${head}connection: close\r\n\r\n${problem.body}`;
}

function retryAfterSeconds(error: SidecarError<ProxyErrorCode>): number | undefined {
  if (error instanceof TokenUnavailable) return error.retryAfterSeconds;
  return error.code === 'overloaded' ? 1 : undefined;
}

/** Characters are bytes then, so that the length is known and any connection can carry it. */
function asciiJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[^\x20-\x7e]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
