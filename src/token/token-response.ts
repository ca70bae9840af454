/** What a token endpoint's answer means (RFC 6749 §5), judged from its status, type and bytes alone. */

import type { RenewalPolicy } from '../config/config.ts';

export type TokenResponse = GrantedToken | RefusedGrant;

export interface GrantedToken {
  readonly result: 'success';
  readonly accessToken: string;
  /** From the moment the request was sent. */
  readonly lifetimeMs: number;
}

export interface RefusedGrant {
  /**
   * - `rejected`: the provider understood and refuses; asking again with the same credentials will not help soon.
   * - `unavailable`: it could not be reached or cannot answer now.
   * - `invalid_response`: it answered something that is no token.
   */
  readonly result: 'rejected' | 'unavailable' | 'invalid_response';
  /** For logs and the status page. Holds nothing of the answer but its status and a registered error code. */
  readonly detail: string;
  /** What the provider asked for with Retry-After. */
  readonly retryAfterMs?: number;
}

/** Tokens are sent as a header with every request: what is longer would be refused by the upstream's own limits. */
export const MAX_TOKEN_BYTES = 64 * 1024;

/** Ten years. More is not a lifetime but a mistake, of units most likely. */
const MAX_LIFETIME_SECONDS = 10 * 365 * 24 * 3600;

/** RFC 6749 §5.2 and the registered extensions; anything else the provider says is not repeated. */
const KNOWN_ERRORS = new Set([
  'invalid_request',
  'invalid_client',
  'invalid_grant',
  'unauthorized_client',
  'unsupported_grant_type',
  'invalid_scope',
  'invalid_target',
  'access_denied',
  'server_error',
  'temporarily_unavailable',
  'slow_down',
]);

export interface EndpointAnswer {
  readonly status: number;
  readonly contentType: string;
  /** The Retry-After field, when there is one. */
  readonly retryAfter: string | undefined;
  readonly body: string;
  /** Wall time of the answer, to read dates in it. */
  readonly receivedAtMs: number;
}

export function readTokenResponse(
  answer: EndpointAnswer,
  policy: Pick<RenewalPolicy, 'defaultLifetimeMs'>,
): TokenResponse {
  if (answer.status === 200) return readGrant(answer, policy);
  const error = readErrorCode(answer.body);
  const detail = `status ${answer.status}${error === undefined ? '' : ` ${error}`}`;
  const retryAfterMs = parseRetryAfter(answer.retryAfter, answer.receivedAtMs);
  const result = classifyRefusal(answer.status, error);
  return { result, detail, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
}

function classifyRefusal(status: number, error: string | undefined): RefusedGrant['result'] {
  if (error === 'temporarily_unavailable' || error === 'server_error' || error === 'slow_down')
    return 'unavailable';
  if (status === 408 || status === 429 || status >= 500) return 'unavailable';
  // Without a registered code, a 400 or 403 came from something in between, not from the provider's judgement.
  if (status === 401 || (error !== undefined && (status === 400 || status === 403))) return 'rejected';
  return 'invalid_response';
}

function readGrant(answer: EndpointAnswer, policy: Pick<RenewalPolicy, 'defaultLifetimeMs'>): TokenResponse {
  const fields = parseObject(answer.body);
  if (fields === undefined) {
    const what = answer.body === '' ? 'an empty body' : describeType(answer.contentType);
    return invalid(`status 200 with ${what} where a JSON object was expected`);
  }
  const { access_token: accessToken, token_type: tokenType, expires_in: expiresIn } = fields;
  // RFC 6750 §2.1 b64token: what has another character could end the header it is put in.
  if (typeof accessToken !== 'string' || !/^[A-Za-z0-9\-._~+/]+=*$/.test(accessToken)) {
    return invalid('access_token is missing or not a bearer token (RFC 6750 §2.1)');
  }
  if (accessToken.length > MAX_TOKEN_BYTES)
    return invalid(`access_token is longer than ${MAX_TOKEN_BYTES} bytes`);
  // RFC 6749 §5.1: required, case-insensitive. Another type asks for a scheme we do not speak.
  if (typeof tokenType !== 'string' || tokenType.toLowerCase() !== 'bearer') {
    return invalid('token_type is not Bearer');
  }
  const missing = expiresIn === undefined || expiresIn === null;
  const lifetimeMs = missing
    ? ownLifetimeMs(accessToken, answer.receivedAtMs, policy.defaultLifetimeMs)
    : statedLifetimeMs(expiresIn);
  if (lifetimeMs === undefined) {
    return missing
      ? invalid('expires_in is missing and the exp of the token itself is past or makes no sense')
      : invalid(`expires_in is not a number of seconds from 1 to ${MAX_LIFETIME_SECONDS}`);
  }
  return { result: 'success', accessToken, lifetimeMs };
}

function invalid(detail: string): RefusedGrant {
  return { result: 'invalid_response', detail };
}

/** `expires_in` as a number or a numeric string of seconds, in ms; undefined when it makes no sense. */
function statedLifetimeMs(expiresIn: unknown): number | undefined {
  const seconds =
    typeof expiresIn === 'string' && /^\d{1,12}$/.test(expiresIn) ? Number(expiresIn) : expiresIn;
  return typeof seconds === 'number' ? lifetimeFromSeconds(seconds) : undefined;
}

function lifetimeFromSeconds(seconds: number): number | undefined {
  return seconds > 0 && seconds <= MAX_LIFETIME_SECONDS ? seconds * 1000 : undefined;
}

/**
 * The lifetime in ms by the token's own word: a JWT's `exp` (RFC 7519 §4.1), counted from `iat` and from now, the
 * shorter of the two, because one of the clocks may be wrong and the token may come from the provider's cache. What is
 * no JWT, or has no `exp`, lives for the default. Undefined when it has ended. Unverified: that is the upstream's part.
 */
function ownLifetimeMs(token: string, nowMs: number, defaultLifetimeMs: number): number | undefined {
  const parts = token.split('.');
  const claims =
    parts.length === 3
      ? parseObject(Buffer.from(parts[1] as string, 'base64url').toString('utf8'))
      : undefined;
  const { exp, iat } = claims ?? {};
  if (typeof exp !== 'number') return defaultLifetimeMs;
  const sinceIssued = typeof iat === 'number' ? exp - iat : Number.POSITIVE_INFINITY;
  return lifetimeFromSeconds(Math.min(sinceIssued, exp - nowMs / 1000));
}

/** Retry-After as seconds or an HTTP date (RFC 9110 §10.2.3), in ms from `nowMs`; undefined when absent or nonsense. */
export function parseRetryAfter(field: string | undefined, nowMs: number): number | undefined {
  if (field === undefined) return undefined;
  if (/^\d{1,9}$/.test(field)) return Number(field) * 1000;
  if (!/^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(field)) return undefined;
  const at = Date.parse(field);
  return Number.isNaN(at) ? undefined : Math.max(0, at - nowMs);
}

function readErrorCode(body: string): string | undefined {
  const error = parseObject(body)?.['error'];
  return typeof error === 'string' && KNOWN_ERRORS.has(error) ? error : undefined;
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

/** The media type if it is a plain one: it goes into a log line. */
function describeType(contentType: string): string {
  const type = contentType.split(';', 1)[0]?.trim() ?? '';
  return /^[a-z0-9.+-]{1,40}\/[a-z0-9.+-]{1,60}$/i.test(type) ? type : 'an unnamed type';
}
