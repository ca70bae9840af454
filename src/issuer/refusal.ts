/**
 * The token endpoint's refusals: an error code, its status, and one sentence for the developer at the other end
 * (RFC 6749 §5.2). They are values: most requests of a scanner end in one, and none of them is exceptional.
 */

/** Status by error code. Every client may use the only grant there is, so `unauthorized_client` never occurs. */
const REFUSAL_STATUS = {
  invalid_request: 400,
  unsupported_grant_type: 400,
  invalid_scope: 400,
  /** RFC 8707 §2, for the `audience` parameter too. */
  invalid_target: 400,
  invalid_client: 401,
  /** Not in RFC 6749: too many wrong secrets came from there, see `AttemptLimits`. */
  too_many_requests: 429,
  /** Not in RFC 6749: more secrets wait to be hashed than the service queues. */
  temporarily_unavailable: 503,
  server_error: 500,
} as const;

export type RefusalCode = keyof typeof REFUSAL_STATUS;

export class Refusal {
  readonly code: RefusalCode;
  /** Never holds anything that the caller sent: it may be a secret in the wrong place. ASCII without `"` and `\`. */
  readonly description: string;
  /** When to retry, if that helps. */
  readonly retryAfterSeconds: number | undefined;

  constructor(code: RefusalCode, description: string, retryAfterSeconds?: number) {
    this.code = code;
    this.description = description;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** An answer of the token listener; its body is always JSON. */
export interface TokenAnswer {
  readonly status: number;
  /** In addition to those of every answer. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** On every answer (RFC 6749 §5.1): no cache may keep a token. */
export const ANSWER_HEADERS = {
  'Content-Type': 'application/json',
  'Cache-Control': 'no-store',
  Pragma: 'no-cache',
} as const;

/** The error answer of RFC 6749 §5.2. @param realm without `"` and `\\`. */
export function describeRefusal(
  { code, description, retryAfterSeconds }: Refusal,
  realm: string,
): TokenAnswer {
  return {
    status: REFUSAL_STATUS[code],
    headers: {
      ...(code === 'invalid_client' ? { 'WWW-Authenticate': `Basic realm="${realm}"` } : {}),
      ...(retryAfterSeconds === undefined ? {} : { 'Retry-After': String(retryAfterSeconds) }),
    },
    body: JSON.stringify({ error: code, error_description: description }),
  };
}
