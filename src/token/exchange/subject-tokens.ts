/**
 * Tokens that were exchanged for those of requests (RFC 8693): each is for its own subject and for no other, whose token is
 * known here by its SHA-256 alone. At most so many subjects and bytes are kept; whoever was not asked for longest goes first.
 */

import { createHash } from 'node:crypto';
import { type Clock, type Instant, isPast, later } from '../../clock.ts';
import { SidecarError } from '../../errors.ts';
import type { AwaitsGrant, GrantTrace } from '../bearer-source.ts';
import { ownLifetime } from '../provider/token-lifetime.ts';
import type { RefusedGrant, TokenResponse } from '../provider/token-response.ts';
import { sendableMs } from '../schedule.ts';
import { TokenUnavailable } from '../token-unavailable.ts';

/** Subjects that are known at once. */
export const MOST_SUBJECTS = 1000;
/** Of all their tokens. */
export const MOST_BYTES = 8 * 1024 * 1024;
/** Exchanges under way at once; further subjects are turned away. */
export const MOST_EXCHANGES = 256;

/** For so long a subject that was refused is refused again without being asked about. */
const REFUSED_FOR_MS = 5000;
/** For so long a provider that did not answer is not asked for anybody, and one that cannot answer not for the subject. */
const AWAY_FOR_MS = 1000;
/** For so long one that rejects the client is not asked for anybody: asking again locks it out. */
const REJECTED_FOR_MS = 30_000;
const LONGEST_RETRY_AFTER_MS = 60_000;
/** A token that was refused by an upstream is exchanged anew no sooner than this after it was. */
const YOUNGEST_REPLACED_MS = 30_000;

/** A result whose subject has ended by our clock is for the requests that wait for it. */
const OF_ENDED_FOR_MS = 1000;

export function isOfSubject({ result, blames }: RefusedGrant): boolean {
  return result === 'rejected' && blames === 'subject';
}

/**
 * Whether every subject would fare alike: the client is rejected, or no answer came at all. Any other answer may be the
 * doing of one subject, whose caller must not be able to turn the others away.
 */
export function isOfEverybody({ result, blames }: RefusedGrant): boolean {
  return blames === 'client' || (result === 'unavailable' && blames === undefined);
}

type SubjectState =
  | {
      readonly kind: 'exchanging';
      readonly token: Promise<string>;
      /** Of the exchange, where it is traced. */
      readonly trace: GrantTrace | undefined;
    }
  | {
      readonly kind: 'held';
      readonly authorization: string;
      readonly requestedAtMs: number;
      readonly sendableUntil: Instant;
    }
  | { readonly kind: 'refused'; readonly error: SidecarError; readonly untilMs: number }
  /** No verdict on the subject, but maybe of its doing. */
  | { readonly kind: 'failed'; readonly error: TokenUnavailable; readonly untilMs: number };

export interface SubjectTokensOptions {
  /** Of the credential, for messages. */
  readonly name: string;
  readonly clock: Clock;
  /** Never rejects. @param begun is told at once of the exchange, where it is traced. */
  exchange(subject: string, begun: AwaitsGrant): Promise<TokenResponse>;
}

export class SubjectTokens {
  readonly #options: SubjectTokensOptions;
  /** By SHA-256 of the subject's token, who was asked for last at the end. */
  readonly #subjects = new Map<string, SubjectState>();
  #bytes = 0;
  #exchanging = 0;
  /** While the provider is away, as far as is known. */
  #away: { readonly error: TokenUnavailable; readonly untilMs: number } | undefined;

  constructor(options: SubjectTokensOptions) {
    this.#options = options;
  }

  /** Subjects that are known. */
  get size(): number {
    return this.#subjects.size;
  }

  /** Exchanges under way. */
  get exchanging(): number {
    return this.#exchanging;
  }

  /** The client has other credentials: whether they do is to be found out. */
  forgetFailure(): void {
    this.#away = undefined;
    for (const [key, { kind }] of this.#subjects) if (kind === 'failed') this.#drop(key);
  }

  /** The Authorization value for a subject, if one is held that may be sent. */
  current(subject: string): string | undefined {
    const key = keyOf(subject);
    const state = this.#subjects.get(key);
    if (state?.kind !== 'held' || isPast(state.sendableUntil, this.#options.clock.now())) return undefined;
    this.#put(key, state);
    return state.authorization;
  }

  /**
   * The same, exchanged where none is held. Whoever asks for one subject meanwhile waits for the same exchange.
   * @throws {SidecarError} `subject_token_refused`.
   * @throws {TokenUnavailable}
   */
  async obtain(subject: string, awaits?: AwaitsGrant): Promise<string> {
    const current = this.current(subject);
    if (current !== undefined) return current;
    const key = keyOf(subject);
    const state = this.#subjects.get(key);
    if (state?.kind === 'exchanging') {
      if (state.trace !== undefined) awaits?.(state.trace);
      return state.token;
    }
    const nowMs = this.#options.clock.monotonicMs();
    const hasFailed = state?.kind === 'refused' || state?.kind === 'failed';
    if (hasFailed && nowMs < state.untilMs) throw state.error;
    return this.#begin(key, subject, awaits);
  }

  /** Another than `refused`; undefined where there is none, or it was exchanged so lately that another will not help. */
  async replace(subject: string, refused: string, awaits?: AwaitsGrant): Promise<string | undefined> {
    const key = keyOf(subject);
    const state = this.#subjects.get(key);
    if (state?.kind === 'held' && state.authorization === refused) {
      const ageMs = this.#options.clock.monotonicMs() - state.requestedAtMs;
      if (ageMs < YOUNGEST_REPLACED_MS) return undefined;
      this.#drop(key);
    }
    try {
      const other = await this.obtain(subject, awaits);
      return other === refused ? undefined : other;
    } catch (error) {
      // The caller passes the 401 on; what the provider said was logged where it said it.
      if (error instanceof SidecarError) return undefined;
      throw error;
    }
  }

  #begin(key: string, subject: string, awaits: AwaitsGrant | undefined): Promise<string> {
    const { name, clock } = this.#options;
    if (this.#away !== undefined && clock.monotonicMs() < this.#away.untilMs) throw this.#away.error;
    if (this.#exchanging >= MOST_EXCHANGES) {
      throw new TokenUnavailable(
        `credential ${name}: ${MOST_EXCHANGES} exchanges are under way`,
        AWAY_FOR_MS,
      );
    }
    this.#exchanging += 1;
    let trace: GrantTrace | undefined;
    const begun = (grant: GrantTrace): void => {
      trace = grant;
      awaits?.(grant);
    };
    const token = this.#exchange(key, subject, begun).finally(() => {
      this.#exchanging -= 1;
    });
    this.#put(key, { kind: 'exchanging', token, trace });
    return token;
  }

  async #exchange(key: string, subject: string, begun: AwaitsGrant): Promise<string> {
    const { clock, exchange } = this.#options;
    const requestedAt = clock.now();
    const outcome = await exchange(subject, begun);
    if (outcome.result !== 'success') throw this.#fail(key, outcome);
    this.#away = undefined;
    const authorization = `Bearer ${outcome.accessToken}`;
    this.#put(key, {
      kind: 'held',
      authorization,
      requestedAtMs: requestedAt.monotonicMs,
      sendableUntil: this.#sendableUntil(subject, requestedAt, outcome.lifetimeMs),
    });
    this.#makeRoom();
    return authorization;
  }

  /** What a subject may do ends with its own token. */
  #sendableUntil(subject: string, requestedAt: Instant, lifetimeMs: number): Instant {
    const own = ownLifetime(subject, requestedAt.wallMs);
    if (own === undefined) return later(requestedAt, sendableMs(lifetimeMs));
    if (own.lifetimeMs !== undefined) {
      return later(requestedAt, sendableMs(Math.min(lifetimeMs, own.lifetimeMs)));
    }
    // The provider granted it all the same: by its clock there may be a moment left.
    return later(this.#options.clock.now(), Math.min(OF_ENDED_FOR_MS, sendableMs(lifetimeMs)));
  }

  #fail(key: string, refusal: RefusedGrant): SidecarError {
    const { result, detail, retryAfterMs = 0 } = refusal;
    const { name, clock } = this.#options;
    const nowMs = clock.monotonicMs();
    if (isOfSubject(refusal)) {
      const error = new SidecarError(
        'subject_token_refused',
        `credential ${name}: the provider does not exchange the token of this request (${detail})`,
      );
      this.#put(key, { kind: 'refused', error, untilMs: nowMs + REFUSED_FOR_MS });
      this.#makeRoom();
      return error;
    }
    const concernsAll = isOfEverybody(refusal);
    const leastMs = result !== 'rejected' ? AWAY_FOR_MS : concernsAll ? REJECTED_FOR_MS : REFUSED_FOR_MS;
    const forMs = Math.max(leastMs, Math.min(retryAfterMs, LONGEST_RETRY_AFTER_MS));
    const error = new TokenUnavailable(
      `credential ${name}: the token of the request could not be exchanged: ${result} (${detail})`,
      forMs,
    );
    const untilMs = nowMs + forMs;
    if (concernsAll) {
      this.#drop(key);
      this.#away = { error, untilMs };
    } else {
      this.#put(key, { kind: 'failed', error, untilMs });
      this.#makeRoom();
    }
    return error;
  }

  /** Puts it last. */
  #put(key: string, state: SubjectState): void {
    this.#drop(key);
    this.#subjects.set(key, state);
    this.#bytes += bytesOf(state);
  }

  #drop(key: string): void {
    const known = this.#subjects.get(key);
    if (known === undefined) return;
    this.#bytes -= bytesOf(known);
    this.#subjects.delete(key);
  }

  #makeRoom(): void {
    for (const [key, state] of this.#subjects) {
      if (this.#subjects.size <= MOST_SUBJECTS && this.#bytes <= MOST_BYTES) return;
      // Who waits for an exchange still gets it.
      if (state.kind !== 'exchanging') this.#drop(key);
    }
  }
}

/** A token is known by what nobody can turn back into it. */
function keyOf(subject: string): string {
  return createHash('sha256').update(subject, 'latin1').digest('base64');
}

function bytesOf(state: SubjectState): number {
  return state.kind === 'held' ? state.authorization.length : 0;
}
