/** The token endpoint's answer: a token (RFC 6749 §5.1), or why there is none (§5.2). */

import { TAKES_REFUSED_TOKEN_HASH } from '../token/broker-protocol.ts';

const REFUSAL_STATUS = {
  invalid_request: 400,
  unsupported_grant_type: 400,
  invalid_scope: 400,
  /** RFC 8707 §2. */
  invalid_target: 400,
  unauthorized_client: 400,
  invalid_client: 401,
  not_found: 404,
  method_not_allowed: 405,
  request_too_large: 413,
  unsupported_media_type: 415,
  /** This caller asks too often. */
  too_many_requests: 429,
  server_error: 500,
  temporarily_unavailable: 503,
} as const;

export type RefusalCode = keyof typeof REFUSAL_STATUS;

export interface Refusal {
  readonly kind: 'refused';
  readonly code: RefusalCode;
  /** For the developer at the other end. Never holds anything that the caller sent. ASCII without `"` and `\`. */
  readonly description: string;
  /** When to retry, if that helps. */
  readonly retryAfterMs?: number;
}

export interface GivenToken {
  readonly kind: 'given';
  readonly token: string;
  /** Whole seconds during which it may be sent. */
  readonly expiresInSeconds: number;
}

export type BrokerAnswer = GivenToken | Refusal;

export function refusal(code: RefusalCode, description: string, retryAfterMs?: number): Refusal {
  return { kind: 'refused', code, description, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
}

/** Bounds on the time after which a caller is asked to retry. */
const RETRY_AFTER_SECONDS = { least: 1, most: 10 };

interface WireAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export function onTheWire(answer: BrokerAnswer): WireAnswer {
  const body =
    answer.kind === 'given'
      ? {
          access_token: answer.token,
          token_type: 'Bearer',
          expires_in: answer.expiresInSeconds,
          [TAKES_REFUSED_TOKEN_HASH]: true,
        }
      : { error: answer.code, error_description: answer.description };
  return {
    status: answer.kind === 'given' ? 200 : REFUSAL_STATUS[answer.code],
    headers: {
      'Content-Type': 'application/json',
      // RFC 6749 §5.1.
      'Cache-Control': 'no-store',
      Pragma: 'no-cache',
      ...(answer.kind === 'refused' ? refusalHeaders(answer) : {}),
    },
    body: JSON.stringify(body),
  };
}

function refusalHeaders({ code, retryAfterMs }: Refusal): Record<string, string> {
  return {
    ...(code === 'method_not_allowed' ? { Allow: 'POST' } : {}),
    ...(retryAfterMs === undefined ? {} : { 'Retry-After': String(retryAfterSeconds(retryAfterMs)) }),
    // Another replica may succeed: a new connection may reach that one.
    ...(code === 'temporarily_unavailable' ? { Connection: 'close' } : {}),
  };
}

function retryAfterSeconds(ms: number): number {
  return Math.min(RETRY_AFTER_SECONDS.most, Math.max(RETRY_AFTER_SECONDS.least, Math.ceil(ms / 1000)));
}
