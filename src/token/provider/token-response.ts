/** What a token endpoint's answer means (RFC 6749 §5), and how long its token lives. */

import type { DpopConfig } from '../../config/config.ts';
import { parseObject } from '../../platform/json-object.ts';
import type { BoundToken } from '../bearer-source.ts';
import { REFUSED_TOKEN } from '../broker-protocol.ts';
import type { TranslateResponse } from '../grants/grants.ts';
import { readProviderError, showProviderError } from './provider-error.ts';
import type { ProviderResponse } from './provider-request.ts';

export type TokenResponse = GrantedToken | RefusedGrant;

export interface GrantedToken {
  readonly result: 'success';
  readonly accessToken: string;
  /** Present if every request with it needs a proof. */
  readonly boundToken?: BoundToken;
  /** From the sending of the request; infinite without an end; 0 for the `ending` token in its last second. */
  readonly lifetimeMs: number;
  /** Neither the answer nor the token says how long it lives. */
  readonly isLifetimeAssumed?: true;
  /** How long ago another process sent the request. */
  readonly sharedAgeMs?: number;
  readonly takesRefusals?: true;
}

export interface RefusedGrant {
  /**
   * - `rejected`: asking again with these credentials will not help soon.
   * - `unavailable`: no answer, or one that says so.
   * - `invalid_response`: no token.
   */
  readonly result: 'rejected' | 'unavailable' | 'invalid_response';
  /** What of the answer may be shown. */
  readonly detail: string;
  /**
   * Absent if no answer came, or one that is neither a token nor a refusal.
   * - `client`: RFC 6749 §5.2.
   * - `subject`: the token to be exchanged (RFC 8693 §2.2.2), or another part of the request.
   */
  readonly blames?: 'client' | 'subject' | 'unsaid' | undefined;
  /** Asked for with Retry-After. */
  readonly retryAfterMs?: number | undefined;
}

export const TOKEN_LIMITS = {
  /** Upstreams' limits on headers would refuse a longer one. */
  bytes: 64 * 1024,
  /** Ten years. A longer one means no end, or is a mistake. */
  lifetimeSeconds: 10 * 365 * 24 * 3600,
};

/** Any other error is a verdict on the request. */
const PASSING_ERRORS: ReadonlySet<string | undefined> = new Set([
  'server_error',
  'temporarily_unavailable',
  'slow_down',
]);

const OF_CLIENT: ReadonlySet<string | undefined> = new Set(['invalid_client', 'unauthorized_client']);

/** RFC 8693 §2.2.2 has `invalid_request`; others are more specific. */
const OF_SUBJECT: ReadonlySet<string | undefined> = new Set([
  'invalid_request',
  'invalid_grant',
  'invalid_token',
  'invalid_subject_token',
  'access_denied',
]);

/** With these an error is a verdict on the request. */
const REFUSING_STATUSES: ReadonlySet<number> = new Set([400, 401, 403]);

/** Some answer 201, as they create a token. */
const GRANTING_STATUSES: ReadonlySet<number> = new Set([200, 201]);

export type EndpointResponse = Omit<ProviderResponse, 'date'> & ResponseTimes;

interface ExpectedResponse {
  /** For a token without a lifetime that is no JWT. */
  readonly defaultLifetimeMs: number;
  readonly zeroIsEndless?: boolean | undefined;
  /** Some providers give the held token again until it ends. */
  readonly ending?: string | undefined;
  /** Accept a missing type, or a provider's own. */
  readonly tokenType?: 'any' | undefined;
  /** The request had a proof. */
  readonly dpop?: (Pick<DpopConfig, 'allowsBearer'> & { bind(accessToken: string): BoundToken }) | undefined;
  readonly translate?: TranslateResponse | undefined;
}

/** @param secrets must not be repeated, should the provider do so. */
export function readTokenResponse(
  answer: EndpointResponse,
  expected: ExpectedResponse,
  secrets: readonly string[],
): TokenResponse {
  const fields = fieldsOf(answer, expected);
  const error = readProviderError(fields);
  const grants = GRANTING_STATUSES.has(answer.status);
  if (grants && (fields?.['access_token'] !== undefined || error === undefined)) {
    return readGrant(answer, fields, expected);
  }
  const said = error === undefined ? '' : ` ${showProviderError(error, secrets)}`;
  return {
    result: classifyRefusal(answer.status, error?.code, expected),
    detail: `status ${answer.status}${said}`,
    blames: blamed(answer.status, error?.code),
    retryAfterMs: parseRetryAfter(answer.retryAfter, answer.receivedAtMs),
  };
}

function fieldsOf(
  answer: EndpointResponse,
  { translate }: ExpectedResponse,
): Readonly<Record<string, unknown>> | undefined {
  const fields = parseObject(answer.body);
  return fields === undefined || translate === undefined
    ? fields
    : translate(fields, requestedAtByProvider(answer).wallMs);
}

function classifyRefusal(
  status: number,
  error: string | undefined,
  { dpop }: ExpectedResponse,
): RefusedGrant['result'] {
  if (PASSING_ERRORS.has(error)) return 'unavailable';
  // Another try has another nonce.
  if (error === 'use_dpop_nonce' && dpop !== undefined) return 'unavailable';
  if (status === 408 || status === 429 || status >= 500) return 'unavailable';
  // Not to be repeated with these credentials (RFC 9110 §15.5.2, §15.5.4).
  if (status === 401 || status === 403) return 'rejected';
  // A 400 without an error code comes from an intermediary.
  return error !== undefined && (status === 200 || status === 400) ? 'rejected' : 'invalid_response';
}

function blamed(status: number, error: string | undefined): RefusedGrant['blames'] {
  if (OF_CLIENT.has(error)) return 'client';
  return REFUSING_STATUSES.has(status) && OF_SUBJECT.has(error) ? 'subject' : 'unsaid';
}

function readGrant(
  answer: EndpointResponse,
  fields: Readonly<Record<string, unknown>> | undefined,
  expected: ExpectedResponse,
): TokenResponse {
  if (fields === undefined) {
    const what = answer.body === '' ? 'an empty body' : describeType(answer.contentType);
    return invalid(`status ${answer.status} with ${what} where a JSON object was expected`);
  }
  const { access_token: accessToken, token_type: tokenType, expires_in: expiresIn } = fields;
  const wrong = wrongToken(accessToken) ?? wrongType(tokenType, expected);
  if (wrong !== undefined) return invalid(wrong);
  const token = accessToken as string;
  const boundToken = isOfType('dpop', tokenType) ? expected.dpop?.bind(token) : undefined;
  const lifetime = lifetimeOf(token, expiresIn, answer, {
    defaultMs: expected.defaultLifetimeMs,
    zeroIsEndless: expected.zeroIsEndless === true,
    isEnding: token === expected.ending,
  });
  if ('wrong' in lifetime) return invalid(lifetime.wrong);
  return {
    result: 'success',
    accessToken: token,
    ...(boundToken === undefined ? {} : { boundToken }),
    lifetimeMs: lifetime.lifetimeMs,
    ...(lifetime.isAssumed === true ? { isLifetimeAssumed: true } : {}),
    ...(fields[REFUSED_TOKEN.announcement] === true ? { takesRefusals: true } : {}),
  };
}

/** Why a text cannot be sent as a token. */
export function wrongToken(accessToken: unknown): string | undefined {
  if (typeof accessToken !== 'string' || accessToken === '') return 'access_token is missing';
  // RFC 6749 appendix A.12 allows visible ASCII. A space or control character would break the header.
  if (!/^[\x21-\x7e]+$/.test(accessToken)) {
    return 'access_token has a character that no header can carry: a space, a control, or one beyond ASCII';
  }
  return accessToken.length > TOKEN_LIMITS.bytes
    ? `access_token is longer than ${TOKEN_LIMITS.bytes} bytes`
    : undefined;
}

/** They need a signature or proof beside the token. Lower-case. */
const PROOF_TYPES: ReadonlyMap<string, string> = new Map([
  ['mac', 'MAC'],
  ['pop', 'PoP'],
]);

/** RFC 6749 §5.1: required, case-insensitive. */
function wrongType(tokenType: unknown, { tokenType: accepted, dpop }: ExpectedResponse): string | undefined {
  const name = typeof tokenType === 'string' ? tokenType.trim() : undefined;
  if (isOfType('dpop', tokenType)) return dpop === undefined ? BOUND_UNASKED : undefined;
  if (dpop?.allowsBearer === false) return `token_type is ${shownType(tokenType)}, ${UNBOUND}`;
  const proof = name === undefined ? undefined : PROOF_TYPES.get(name.toLowerCase());
  if (proof !== undefined) {
    return `token_type is ${proof}: every request with such a token needs a proof, which the sidecar does not make`;
  }
  if (accepted === 'any' || isOfType('bearer', tokenType)) return undefined;
  return `token_type is ${shownType(tokenType)}, not Bearer; if the token is used like one, set tokenType: any`;
}

function shownType(tokenType: unknown): string {
  if (tokenType === undefined || tokenType === null) return 'missing';
  const name = typeof tokenType === 'string' ? tokenType.trim() : '';
  return /^[A-Za-z][A-Za-z _-]{0,40}$/.test(name) ? name : 'no plain name';
}

const UNBOUND = 'not DPoP: the provider has not bound the token to the key';

const BOUND_UNASKED = 'token_type is DPoP: every request with such a token needs a proof';

function isOfType(type: 'bearer' | 'dpop', tokenType: unknown): boolean {
  return typeof tokenType === 'string' && tokenType.trim().toLowerCase() === type;
}

function invalid(detail: string): RefusedGrant {
  return { result: 'invalid_response', detail };
}

/** Only a plain one, for a log line. */
function describeType(contentType: string): string {
  const type = contentType.replace(/;.*/s, '').trim();
  return /^[a-z0-9.+-]{1,40}\/[a-z0-9.+-]{1,60}$/i.test(type) ? type : 'an unnamed type';
}

/** Assumed for an endless token: daily renewal follows changes at the provider. */
const ENDLESS_MS = 24 * 3600 * 1000;

const ENDED = 'expires_in is 0: the token has ended; if it has no end, set renewal.zeroLifetime: endless';

interface ResponseTimes {
  readonly date?: string | undefined;
  /** Wall time; a lifetime counts from here. */
  readonly requestedAtMs: number;
  /** Wall time, to read dates in the answer. */
  readonly receivedAtMs: number;
}

/** In ms from the sending of the request. */
type Lifetime = { readonly lifetimeMs: number; readonly isAssumed?: true } | { readonly wrong: string };

interface ExpectedLifetime {
  /** If neither the answer nor the token states one. */
  readonly defaultMs: number;
  readonly zeroIsEndless: boolean;
  /** The held token is about to end, so an answer that says it has ended is no mistake. */
  readonly isEnding: boolean;
}

function lifetimeOf(
  accessToken: string,
  expiresIn: unknown,
  times: ResponseTimes,
  { defaultMs, zeroIsEndless, isEnding }: ExpectedLifetime,
): Lifetime {
  const requestedAt = requestedAtByProvider(times);
  const own = ownLifetime(accessToken, requestedAt.wallMs);
  const stated = statedSeconds(expiresIn);
  const isZeroOrLess = typeof stated === 'number' && stated <= 0;
  const hasEnded = own === undefined ? isZeroOrLess && !(stated === 0 && zeroIsEndless) : own.hasEnded;
  if (isEnding && hasEnded) return { lifetimeMs: 0 };
  if (own?.hasEnded && requestedAt.certain) {
    return { wrong: "the token has already ended: its exp is past by the answer's own Date" };
  }
  if (stated === 'absent') {
    if (own === undefined) return { lifetimeMs: defaultMs, isAssumed: true };
    if (own.lifetimeMs !== undefined) return { lifetimeMs: own.lifetimeMs };
    return { wrong: 'expires_in is missing and the exp of the token itself is past or makes no sense' };
  }
  const ownMs = own?.lifetimeMs ?? own?.issuedForMs;
  if (stated === 'endless') return { lifetimeMs: ownMs ?? ENDLESS_MS };
  const statedMs = stated === undefined ? undefined : lifetimeFromSeconds(stated);
  if (statedMs !== undefined) return { lifetimeMs: Math.min(statedMs, ownMs ?? statedMs) };
  // Some say 0 for a token that states its own end.
  if (stated === 0 && ownMs !== undefined) return { lifetimeMs: ownMs };
  if (stated === 0 && zeroIsEndless) return { lifetimeMs: ENDLESS_MS };
  if (stated === 0) return { wrong: ENDED };
  return { wrong: 'expires_in is not a number of seconds from 1' };
}

/** RFC 8259 §6, with zeros before it. */
const NUMBER = /^-?\d{1,40}(?:\.\d{1,40})?(?:e[+-]?\d{1,4})?$/i;

/** Undefined if it makes no sense. */
function statedSeconds(expiresIn: unknown): number | 'absent' | 'endless' | undefined {
  if (expiresIn === undefined || expiresIn === null || expiresIn === '') return 'absent';
  const seconds = typeof expiresIn === 'string' && NUMBER.test(expiresIn) ? Number(expiresIn) : expiresIn;
  if (typeof seconds !== 'number') return undefined;
  return seconds > TOKEN_LIMITS.lifetimeSeconds ? 'endless' : seconds;
}

function lifetimeFromSeconds(seconds: number): number | undefined {
  return seconds > 0 && seconds <= TOKEN_LIMITS.lifetimeSeconds ? seconds * 1000 : undefined;
}

interface OwnLifetime {
  /** `exp` is past, by a clock that may be wrong. */
  readonly hasEnded: boolean;
  /** Undefined if the token has expired, perhaps by a wrong clock. */
  readonly lifetimeMs: number | undefined;
  /** `exp - iat`, which no local clock can falsify. */
  readonly issuedForMs: number | undefined;
}

/**
 * A JWT's `exp` (RFC 7519 §4.1), from `iat` or from the request, whichever is shorter, since either clock may be wrong. Unverified.
 */
export function ownLifetime(token: string, requestedAtMs: number): OwnLifetime | undefined {
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

/** Clocks this close count as the same. */
const CLOCK_TOLERANCE_MS = 10_000;

/**
 * When the request was sent, by the provider's clock if its Date differs. Date is the answer's, so such a token expires early by
 * the grant's duration. Uncertain without Date.
 */
function requestedAtByProvider({ date, requestedAtMs, receivedAtMs }: ResponseTimes): {
  readonly wallMs: number;
  readonly certain: boolean;
} {
  const saidMs = date === undefined ? undefined : parseHttpDate(date);
  if (saidMs === undefined) return { wallMs: requestedAtMs, certain: false };
  const agrees = Math.abs(saidMs - receivedAtMs) <= CLOCK_TOLERANCE_MS;
  return { wallMs: agrees ? requestedAtMs : saidMs, certain: true };
}

/** Seconds or a date (RFC 9110 §10.2.3), in ms from `nowMs`; undefined if nonsense. */
function parseRetryAfter(field: string | undefined, nowMs: number): number | undefined {
  if (field === undefined) return undefined;
  if (/^\d{1,9}$/.test(field)) return Number(field) * 1000;
  const at = parseHttpDate(field);
  return at === undefined ? undefined : Math.max(0, at - nowMs);
}

/** RFC 9110 §5.6.7, in ms since the epoch; undefined for anything else. */
export function parseHttpDate(field: string): number | undefined {
  if (!/^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(field)) return undefined;
  const at = Date.parse(field);
  return Number.isNaN(at) ? undefined : at;
}
