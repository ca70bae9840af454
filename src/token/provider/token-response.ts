/** What a token endpoint's answer means (RFC 6749 §5), judged from its status, type and bytes alone. */

import type { RenewalPolicy } from '../../config/config.ts';
import { readProviderError, showProviderError } from './provider-error.ts';

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
  /** For logs and the status page: the status, and what the provider says of it as far as that may be shown. */
  readonly detail: string;
  /** What the provider asked for with Retry-After. */
  readonly retryAfterMs?: number | undefined;
}

/** Tokens are sent as a header with every request: what is longer would be refused by the upstream's own limits. */
export const MAX_TOKEN_BYTES = 64 * 1024;

/** Ten years. More is not a lifetime but a mistake, of units most likely. */
const MAX_LIFETIME_SECONDS = 10 * 365 * 24 * 3600;

/** Errors that pass: the provider cannot answer now. Every other is a verdict on what was asked for. */
const PASSING_ERRORS: ReadonlySet<string | undefined> = new Set([
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
  /** The Date field, when there is one: the provider's own clock. */
  readonly date?: string | undefined;
  /** Wall time of the request: a lifetime counts from here. */
  readonly requestedAtMs: number;
  /** Wall time of the answer, to read dates in it. */
  readonly receivedAtMs: number;
}

/** @param secrets what must not be repeated, should the provider say it: the client's secret and id. */
export function readTokenResponse(
  answer: EndpointAnswer,
  policy: Pick<RenewalPolicy, 'defaultLifetimeMs'>,
  secrets: readonly string[],
): TokenResponse {
  const fields = parseObject(answer.body);
  const error = readProviderError(fields);
  if (answer.status === 200 && (fields?.['access_token'] !== undefined || error === undefined)) {
    return readGrant(answer, fields, policy);
  }
  const said = error === undefined ? '' : ` ${showProviderError(error, secrets)}`;
  return {
    result: classifyRefusal(answer.status, error?.code),
    detail: `status ${answer.status}${said}`,
    retryAfterMs: parseRetryAfter(answer.retryAfter, answer.receivedAtMs),
  };
}

function classifyRefusal(status: number, error: string | undefined): RefusedGrant['result'] {
  if (PASSING_ERRORS.has(error)) return 'unavailable';
  if (status === 408 || status === 429 || status >= 500) return 'unavailable';
  // RFC 9110 §15.5.2 and §15.5.4: not to be repeated with the same credentials.
  if (status === 401 || status === 403) return 'rejected';
  // Without an error of its own, a 400 came from something in between, not from the provider's judgement.
  return error !== undefined && (status === 200 || status === 400) ? 'rejected' : 'invalid_response';
}

function readGrant(
  answer: EndpointAnswer,
  fields: Record<string, unknown> | undefined,
  policy: Pick<RenewalPolicy, 'defaultLifetimeMs'>,
): TokenResponse {
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
  const requestedAt = requestedAtByProvider(answer);
  const own = ownLifetimeMs(accessToken, requestedAt.wallMs);
  if (own?.hasEnded && requestedAt.certain) {
    return invalid("the token has already ended: its exp is past by the answer's own Date");
  }
  if (expiresIn === undefined || expiresIn === null) {
    const lifetimeMs = own === undefined ? policy.defaultLifetimeMs : own.lifetimeMs;
    if (lifetimeMs !== undefined) return { result: 'success', accessToken, lifetimeMs };
    return invalid('expires_in is missing and the exp of the token itself is past or makes no sense');
  }
  const statedMs = statedLifetimeMs(expiresIn);
  if (statedMs === undefined) {
    return invalid(`expires_in is not a number of seconds from 1 to ${MAX_LIFETIME_SECONDS}`);
  }
  // The upstream looks at the token, not at what came with it.
  const lifetimeMs = Math.min(statedMs, own?.lifetimeMs ?? own?.issuedForMs ?? statedMs);
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

interface OwnLifetime {
  /** `exp` is past, by a clock that may be wrong. */
  readonly hasEnded: boolean;
  /** What is left of it; undefined when it has ended, or seems to by a clock that is wrong. */
  readonly lifetimeMs: number | undefined;
  /** `exp - iat`, which no clock of ours can falsify; undefined when it makes no sense. */
  readonly issuedForMs: number | undefined;
}

/**
 * The lifetime by the token's own word: a JWT's `exp` (RFC 7519 §4.1), counted from `iat` and from the request, the
 * shorter of the two, because one of the clocks may be wrong and the token may come from the provider's cache. Unverified: that is
 * the upstream's part. Undefined for what is no JWT, or one without `exp`.
 */
function ownLifetimeMs(token: string, requestedAtMs: number): OwnLifetime | undefined {
  const parts = token.split('.');
  const claims =
    parts.length === 3
      ? parseObject(Buffer.from(parts[1] as string, 'base64url').toString('utf8'))
      : undefined;
  const { exp, iat } = claims ?? {};
  if (typeof exp !== 'number') return undefined;
  const sinceIssued = typeof iat === 'number' ? exp - iat : Number.POSITIVE_INFINITY;
  return {
    hasEnded: exp * 1000 <= requestedAtMs,
    lifetimeMs: lifetimeFromSeconds(Math.min(sinceIssued, exp - requestedAtMs / 1000)),
    issuedForMs: lifetimeFromSeconds(sinceIssued),
  };
}

/** How far apart clocks may be that still count as the same. */
const CLOCK_TOLERANCE_MS = 10_000;

/**
 * When the request was sent, by the clock that tokens are dated by: the provider's where it tells it and it is another
 * than ours. Its Date is that of the answer, which is later: such a token ends too early by what the grant took.
 * Without a Date nobody confirms our clock, and what it says of a token's end is not certain.
 */
function requestedAtByProvider({ date, requestedAtMs, receivedAtMs }: EndpointAnswer): {
  readonly wallMs: number;
  readonly certain: boolean;
} {
  const saidMs = date === undefined ? undefined : parseHttpDate(date);
  if (saidMs === undefined) return { wallMs: requestedAtMs, certain: false };
  const agrees = Math.abs(saidMs - receivedAtMs) <= CLOCK_TOLERANCE_MS;
  return { wallMs: agrees ? requestedAtMs : saidMs, certain: true };
}

/** Retry-After as seconds or an HTTP date (RFC 9110 §10.2.3), in ms from `nowMs`; undefined when absent or nonsense. */
export function parseRetryAfter(field: string | undefined, nowMs: number): number | undefined {
  if (field === undefined) return undefined;
  if (/^\d{1,9}$/.test(field)) return Number(field) * 1000;
  const at = parseHttpDate(field);
  return at === undefined ? undefined : Math.max(0, at - nowMs);
}

/** IMF-fixdate (RFC 9110 §5.6.7) in ms since the epoch; undefined for anything else. */
function parseHttpDate(field: string): number | undefined {
  if (!/^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(field)) return undefined;
  const at = Date.parse(field);
  return Number.isNaN(at) ? undefined : at;
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
  const type = contentType.replace(/;.*/s, '').trim();
  return /^[a-z0-9.+-]{1,40}\/[a-z0-9.+-]{1,60}$/i.test(type) ? type : 'an unnamed type';
}
