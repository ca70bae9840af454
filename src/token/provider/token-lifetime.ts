/** How long a token lives, according to the answer and to the token itself. */

import { parseObject } from '../json-object.ts';

/** Ten years. A longer lifetime means no end, or is a mistake. */
export const MAX_LIFETIME_SECONDS = 10 * 365 * 24 * 3600;

/** The lifetime assumed for an endless token: renewed daily, it follows changes at the provider. */
const ENDLESS_MS = 24 * 3600 * 1000;

const ENDED = 'expires_in is 0: the token has ended; if it has no end, set renewal.zeroLifetime: endless';

export interface AnswerTimes {
  /** The Date field, if present: the provider's own clock. */
  readonly date?: string | undefined;
  /** Wall time of the request: a lifetime counts from here. */
  readonly requestedAtMs: number;
  /** Wall time of the answer, to read dates in it. */
  readonly receivedAtMs: number;
}

/** A lifetime in ms from the moment the request was sent, or why there is none. */
type Lifetime = { readonly lifetimeMs: number } | { readonly wrong: string };

interface ExpectedLifetime {
  /** For a token whose lifetime neither the answer nor the token states. */
  readonly defaultMs: number;
  /** 0 means that the token has no end. */
  readonly zeroIsEndless: boolean;
  /** The token is held already and about to end: an answer that says that it has ended is no mistake. */
  readonly isEnding: boolean;
}

export function lifetimeOf(
  accessToken: string,
  expiresIn: unknown,
  times: AnswerTimes,
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
    const lifetimeMs = own === undefined ? defaultMs : own.lifetimeMs;
    if (lifetimeMs !== undefined) return { lifetimeMs };
    return { wrong: 'expires_in is missing and the exp of the token itself is past or makes no sense' };
  }
  const ownMs = own?.lifetimeMs ?? own?.issuedForMs;
  if (stated === 'endless') return { lifetimeMs: ownMs ?? ENDLESS_MS };
  const statedMs = stated === undefined ? undefined : lifetimeFromSeconds(stated);
  // The upstream looks at the token, not at the answer that brought it.
  if (statedMs !== undefined) return { lifetimeMs: Math.min(statedMs, ownMs ?? statedMs) };
  // Some say 0 for a token that states its own end.
  if (stated === 0 && ownMs !== undefined) return { lifetimeMs: ownMs };
  if (stated === 0 && zeroIsEndless) return { lifetimeMs: ENDLESS_MS };
  if (stated === 0) return { wrong: ENDED };
  return { wrong: 'expires_in is not a number of seconds from 1' };
}

/** A number as JSON has it (RFC 8259 §6), with zeros before it. */
const NUMBER = /^-?\d{1,40}(?:\.\d{1,40})?(?:e[+-]?\d{1,4})?$/i;

/** `expires_in` as a number of seconds or a string of one; undefined when it makes no sense. */
function statedSeconds(expiresIn: unknown): number | 'absent' | 'endless' | undefined {
  if (expiresIn === undefined || expiresIn === null || expiresIn === '') return 'absent';
  const seconds = typeof expiresIn === 'string' && NUMBER.test(expiresIn) ? Number(expiresIn) : expiresIn;
  if (typeof seconds !== 'number') return undefined;
  return seconds > MAX_LIFETIME_SECONDS ? 'endless' : seconds;
}

function lifetimeFromSeconds(seconds: number): number | undefined {
  return seconds > 0 && seconds <= MAX_LIFETIME_SECONDS ? seconds * 1000 : undefined;
}

interface OwnLifetime {
  /** `exp` is past, by a clock that may be wrong. */
  readonly hasEnded: boolean;
  /** The remaining lifetime; undefined if the token has expired, or seems to by a wrong clock. */
  readonly lifetimeMs: number | undefined;
  /** `exp - iat`, which no clock of ours can falsify; undefined if it makes no sense. */
  readonly issuedForMs: number | undefined;
}

/**
 * The lifetime that the token itself states: a JWT's `exp` (RFC 7519 §4.1), counted from `iat` and from the request,
 * whichever is shorter, because either clock may be wrong and the token may come from the provider's cache. Unverified:
 * that is the upstream's part. Undefined for anything but a JWT with `exp`.
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
 * When the request was sent, by the clock that dates tokens: the provider's, if it sends a Date that differs from ours.
 * That Date is the answer's, which is later: such a token expires early by the time that the grant took. Without a Date
 * nothing confirms our clock, and its word on a token's end is not certain.
 */
export function requestedAtByProvider({ date, requestedAtMs, receivedAtMs }: AnswerTimes): {
  readonly wallMs: number;
  readonly certain: boolean;
} {
  const saidMs = date === undefined ? undefined : parseHttpDate(date);
  if (saidMs === undefined) return { wallMs: requestedAtMs, certain: false };
  const agrees = Math.abs(saidMs - receivedAtMs) <= CLOCK_TOLERANCE_MS;
  return { wallMs: agrees ? requestedAtMs : saidMs, certain: true };
}

/** Retry-After as seconds or an HTTP date (RFC 9110 §10.2.3), in ms from `nowMs`; undefined if absent or nonsense. */
export function parseRetryAfter(field: string | undefined, nowMs: number): number | undefined {
  if (field === undefined) return undefined;
  if (/^\d{1,9}$/.test(field)) return Number(field) * 1000;
  const at = parseHttpDate(field);
  return at === undefined ? undefined : Math.max(0, at - nowMs);
}

/** IMF-fixdate (RFC 9110 §5.6.7) in ms since the epoch; undefined for anything else. */
export function parseHttpDate(field: string): number | undefined {
  if (!/^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(field)) return undefined;
  const at = Date.parse(field);
  return Number.isNaN(at) ? undefined : at;
}
