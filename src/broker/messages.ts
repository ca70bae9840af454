/** A request for a token (RFC 6749 §4.4), with the service account token as the client's proof (RFC 7523 §2.2). */

import { FormFault, parseForm } from '../platform/form.ts';
import { REFUSED_TOKEN, tokenHash } from '../token/broker-protocol.ts';

export interface TokenRequest {
  readonly kind: 'request';
  readonly profile: string;
  readonly credential: string;
  /** Not verified. */
  readonly assertion: string;
  readonly clientId: string | undefined;
  readonly scope: string | undefined;
  /** SHA-256 of a token that an upstream has refused. */
  readonly refusedTokenHash: Buffer | undefined;
}

export interface Message {
  readonly method: string | undefined;
  /** As received. */
  readonly target: string;
  /** By lower-case name, at least `READ_FIELDS`. */
  readonly headers: Readonly<Record<string, readonly string[] | undefined>>;
}

export interface Address {
  readonly kind: 'address';
  readonly profile: string;
  readonly credential: string;
}

const NAME = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?';
/** With percent-encoding, dots in place of names, or a query it is another path. */
const PATH = new RegExp(`^/token/(${NAME})/(${NAME})$`);

const FORM = /^application\/x-www-form-urlencoded\s*(;|$)/i;

const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

export const READ_FIELDS: ReadonlySet<string> = new Set([
  'authorization',
  'content-type',
  'content-encoding',
]);

export function readAddress({ method, target, headers }: Message): Address | Refusal {
  const [, profile, credential] = PATH.exec(target) ?? [];
  if (profile === undefined || credential === undefined) {
    return refusal(
      'not_found',
      'there is /token/PROFILE/CREDENTIAL, with names as they are, and nothing else',
    );
  }
  if (method !== 'POST') return refusal('method_not_allowed', 'use POST');
  if (headers['authorization'] !== undefined) {
    return refusal('invalid_request', 'the client is proved by client_assertion, and by nothing beside it');
  }
  const types = headers['content-type'] ?? [];
  if (types.length !== 1 || !FORM.test(types[0] as string)) {
    return refusal('unsupported_media_type', 'use application/x-www-form-urlencoded');
  }
  if (headers['content-encoding'] !== undefined) {
    return refusal('unsupported_media_type', 'send the form as it is, without a content encoding');
  }
  return { kind: 'address', profile, credential };
}

export function readTokenRequest({ profile, credential }: Address, body: Uint8Array): TokenRequest | Refusal {
  const form = parseForm(body);
  if (form instanceof FormFault) return refusal('invalid_request', form.description);
  if (form.get('grant_type') !== 'client_credentials') {
    return refusal('unsupported_grant_type', 'grant_type is client_credentials');
  }
  if (form.has('client_secret')) {
    return refusal('invalid_request', 'the client is proved by client_assertion, and by nothing beside it');
  }
  const assertion = form.get('client_assertion');
  if (form.get('client_assertion_type') !== ASSERTION_TYPE || assertion === undefined) {
    return refusal(
      'invalid_request',
      `a client_assertion is needed, of client_assertion_type ${ASSERTION_TYPE}`,
    );
  }
  if (form.has('audience') || form.has('resource')) {
    return refusal('invalid_target', 'the profile says what the token is for');
  }
  const reported = form.get(REFUSED_TOKEN.parameter);
  const refusedTokenHash = reported === undefined ? undefined : tokenHash.read(reported);
  if (reported !== undefined && refusedTokenHash === undefined) {
    return refusal('invalid_request', `${REFUSED_TOKEN.parameter} is a SHA-256 in base64url, 43 characters`);
  }
  return {
    kind: 'request',
    profile,
    credential,
    assertion,
    clientId: form.get('client_id'),
    scope: form.get('scope'),
    refusedTokenHash,
  };
}

// The answer: a token (RFC 6749 §5.1), or why there is none (§5.2).

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
  too_many_requests: 429,
  server_error: 500,
  temporarily_unavailable: 503,
} as const;

export type RefusalCode = keyof typeof REFUSAL_STATUS;

interface Refusal {
  readonly kind: 'refused';
  readonly code: RefusalCode;
  /** Never holds anything that the caller sent. ASCII without `"` and `\`. */
  readonly description: string;
  readonly retryAfterMs?: number;
}

export interface GivenToken {
  readonly kind: 'given';
  readonly token: string;
  /** Whole seconds during which it may be sent. */
  readonly expiresInSeconds: number;
}

export type BrokerResponse = GivenToken | Refusal;

export function refusal(code: RefusalCode, description: string, retryAfterMs?: number): Refusal {
  return { kind: 'refused', code, description, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
}

const RETRY_AFTER_SECONDS = { least: 1, most: 10 };

interface WireResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export function onTheWire(answer: BrokerResponse): WireResponse {
  const body =
    answer.kind === 'given'
      ? {
          access_token: answer.token,
          token_type: 'Bearer',
          expires_in: answer.expiresInSeconds,
          [REFUSED_TOKEN.announcement]: true,
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
    // A new connection may reach another replica.
    ...(code === 'temporarily_unavailable' ? { Connection: 'close' } : {}),
  };
}

function retryAfterSeconds(ms: number): number {
  return Math.min(RETRY_AFTER_SECONDS.most, Math.max(RETRY_AFTER_SECONDS.least, Math.ceil(ms / 1000)));
}
