import { REFUSAL_STATUS, type Refusal } from './refusal.ts';

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
