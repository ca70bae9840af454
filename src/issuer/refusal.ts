/** The token endpoint's refusals (RFC 6749 §5.2). */

/** Every client may use the only grant, so `unauthorized_client` never occurs. */
const REFUSAL_STATUS = {
  invalid_request: 400,
  unsupported_grant_type: 400,
  invalid_scope: 400,
  /** RFC 8707 §2 */
  invalid_target: 400,
  /** RFC 9449 §5 */
  invalid_dpop_proof: 400,
  /** RFC 9449 §8 */
  use_dpop_nonce: 400,
  invalid_client: 401,
  /** Not in RFC 6749: see `LoginThrottle`. */
  too_many_requests: 429,
  /** Not in RFC 6749: too much to hash. */
  temporarily_unavailable: 503,
  server_error: 500,
} as const;

export type RefusalCode = keyof typeof REFUSAL_STATUS;

export class Refusal {
  readonly code: RefusalCode;
  /** Never holds what the caller sent. ASCII without `"` and `\`. */
  readonly description: string;
  readonly retryAfterSeconds: number | undefined;
  /** For the next DPoP proof. */
  readonly nonce: string | undefined;

  constructor(code: RefusalCode, description: string, retryAfterSeconds?: number, nonce?: string) {
    this.code = code;
    this.description = description;
    this.retryAfterSeconds = retryAfterSeconds;
    this.nonce = nonce;
  }
}

/** The body is always JSON. */
export interface TokenAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The answer of RFC 6749 §5.2. @param realm without `"` and `\\`. */
export function describeRefusal(
  { code, description, retryAfterSeconds, nonce }: Refusal,
  realm: string,
): TokenAnswer {
  return {
    status: REFUSAL_STATUS[code],
    headers: {
      ...(code === 'invalid_client' ? { 'WWW-Authenticate': `Basic realm="${realm}"` } : {}),
      ...(nonce === undefined ? {} : { 'DPoP-Nonce': nonce }),
      ...(retryAfterSeconds === undefined ? {} : { 'Retry-After': String(retryAfterSeconds) }),
    },
    body: JSON.stringify({ error: code, error_description: description }),
  };
}
