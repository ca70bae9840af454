/** Tokens exchanged for those of requests (RFC 8693). Failures are kept apart, so that no caller can displace granted tokens. */

import { createHash } from 'node:crypto';
import { SidecarError } from '../../platform/errors.ts';
import { FairQueue, type Place, type Turn } from '../../platform/limits/fair-queue.ts';
import { LruMap } from '../../platform/limits/lru-map.ts';
import { type Clock, hasPassed, type Instant, later } from '../../platform/time/clock.ts';
import {
  type Authorization,
  type AwaitsGrant,
  accessTokenIn,
  fieldValueOf,
  type GrantTrace,
  isSameToken,
  TokenUnavailable,
  type TokenWaiter,
} from '../bearer-source.ts';
import { ownLifetime, type RefusedGrant, type TokenResponse } from '../provider/token-response.ts';
import { ENDED_TOKEN_DELAY_MS, isAboutToEnd, sendableMs } from '../schedule.ts';
import { abortable } from '../waiters.ts';

/** Subjects with a token; the least recently used goes first. */
const MAX_SUBJECTS = 1000;
const MAX_FAILED = 1000;
/** Size of all tokens. */
const MAX_BYTES = 8 * 1024 * 1024;
/** Under way or in line. Beyond that the caller with the most in line is turned away. */
const MAX_EXCHANGES = 256;

const REFUSED_FOR_MS = 5000;
/** After no answer, the provider is asked for no subject; if it said that it cannot answer now, only not for that subject. */
const AWAY_FOR_MS = 1000;
/**
 * After a rejected client, the subject is not tried again, so as not to lock the client out; after two of one caller, none of its
 * subjects.
 */
const REJECTED_FOR_MS = 30_000;
const MAX_RETRY_AFTER_MS = 60_000;
/** Between exchanges, if an upstream refused the token. */
const YOUNGEST_REPLACED_MS = 30_000;

/** For waiting requests, if the subject has expired by this machine's clock. */
const OF_ENDED_FOR_MS = 1000;

export function isOfSubject({ result, blames }: RefusedGrant): boolean {
  return result === 'rejected' && blames === 'subject';
}

/** Failures that every subject would meet. One subject may have caused any other. */
type CommonFailure = 'client_rejected' | 'unanswered';

function commonFailure({ result, blames }: RefusedGrant): CommonFailure | undefined {
  if (blames === 'client') return 'client_rejected';
  return result === 'unavailable' && blames === undefined ? 'unanswered' : undefined;
}

/** The caller concerned; `undefined` for all. */
type Concerned = string | undefined;

interface Away {
  readonly why: Why;
  readonly untilMs: number;
  readonly of: Concerned;
}

interface Asker extends TokenWaiter {
  readonly caller?: string | undefined;
}

interface Exchanging {
  token: Promise<Authorization>;
  readonly place: Place;
  readonly askers: Set<Asker>;
  trace: GrantTrace | undefined;
}

interface Wanted {
  readonly key: string;
  readonly subject: string;
  readonly caller: string | undefined;
  readonly begun: AwaitsGrant;
}

interface Held {
  readonly authorization: Authorization;
  readonly requestedAtMs: number;
  readonly sendableUntil: Instant;
}

/** Not the error: its stack would hold on to its request. */
type Why =
  | { readonly code: 'subject_token_refused'; readonly message: string }
  | { readonly code: 'token_unavailable'; readonly message: string; readonly retryAfterMs: number };

interface Failed {
  readonly why: Why;
  readonly untilMs: number;
  /** `failed` is no verdict on the subject. */
  readonly kind: 'refused' | 'failed';
}

interface SubjectTokensOptions {
  readonly name: string;
  readonly clock: Clock;
  readonly atOnce: number;
  readonly timeoutMs: number;
  /**
   * Never rejects.
   * @param ending the subject's token that is about to end.
   */
  exchange(subject: string, begun: AwaitsGrant, ending: string | undefined): Promise<TokenResponse>;
}

export class SubjectTokens {
  readonly #options: SubjectTokensOptions;
  /** By SHA-256 of the subject's token, as below. */
  readonly #exchanging = new Map<string, Exchanging>();
  readonly #held = new LruMap<string, Held>({
    max: MAX_SUBJECTS,
    maxWeight: MAX_BYTES,
    weigh: ({ authorization }) => fieldValueOf(authorization).length,
  });
  readonly #failed = new LruMap<string, Failed>({ max: MAX_FAILED });
  readonly #line: FairQueue;
  /** The provider is believed to be away, or to reject the client. */
  #away: Away | undefined;
  #refusesAll = false;
  /** The last failure, if every subject would meet it, and who met it first. */
  #suspected:
    | { readonly failure: CommonFailure; readonly key: string; readonly caller: string | undefined }
    | undefined;

  constructor(options: SubjectTokensOptions) {
    this.#options = options;
    this.#line = new FairQueue(options.clock, {
      ...options,
      // So that one caller cannot take all.
      spared: 1,
      mostWaiting: MAX_EXCHANGES - options.atOnce,
    });
  }

  get size(): number {
    return this.#held.size + this.#failed.size;
  }

  get exchanging(): number {
    return this.#exchanging.size;
  }

  get refusesAll(): boolean {
    return this.#refusesAll;
  }

  /** Failures of old credentials say nothing of new ones. */
  forgetFailure(): void {
    this.#away = undefined;
    this.#suspected = undefined;
    for (const [key, { kind }] of this.#failed.entries()) if (kind === 'failed') this.#failed.delete(key);
  }

  current(subject: string): Authorization | undefined {
    const key = keyOf(subject);
    const held = this.#held.peek(key);
    if (held === undefined || hasPassed(held.sendableUntil, this.#options.clock.now())) return undefined;
    return this.#held.get(key)?.authorization;
  }

  /**
   * Requests of one subject share an exchange, which leaves the line once all have gone.
   * @throws {SidecarError} `subject_token_refused`.
   * @throws {TokenUnavailable}
   */
  async obtain(subject: string, asker: Asker = {}): Promise<Authorization> {
    const current = this.current(subject);
    if (current !== undefined) return current;
    const key = keyOf(subject);
    const exchanging = this.#exchanging.get(key);
    if (exchanging !== undefined) return this.#join(key, exchanging, asker);
    const failed = this.#failed.peek(key);
    if (failed !== undefined && this.#options.clock.monotonicMs() < failed.untilMs) throw errorOf(failed.why);
    return this.#begin(key, subject, asker);
  }

  /** Another value than `refused`; undefined if there is none, or if it was exchanged too lately. */
  async replace(subject: string, refused: Authorization, asker?: Asker): Promise<Authorization | undefined> {
    const key = keyOf(subject);
    const held = this.#held.peek(key);
    if (held !== undefined && isSameToken(held.authorization, refused)) {
      const ageMs = this.#options.clock.monotonicMs() - held.requestedAtMs;
      if (ageMs < YOUNGEST_REPLACED_MS) return undefined;
      this.#held.delete(key);
    }
    try {
      const other = await this.obtain(subject, asker);
      return isSameToken(other, refused) ? undefined : other;
    } catch (error) {
      if (error instanceof SidecarError) return undefined;
      throw error;
    }
  }

  #begin(key: string, subject: string, asker: Asker): Promise<Authorization> {
    this.#assertThere(asker.caller);
    const place = this.#line.enter(asker.caller);
    const askers = new Set<Asker>();
    const begun: AwaitsGrant = (trace) => {
      exchanging.trace = trace;
      for (const { awaits } of askers) awaits?.(trace);
    };
    const token = this.#inTurn({ key, subject, caller: asker.caller, begun }, place).finally(() => {
      place.end();
      this.#forget(key, exchanging);
    });
    const exchanging: Exchanging = { token, place, askers, trace: undefined };
    this.#exchanging.set(key, exchanging);
    return this.#join(key, exchanging, asker);
  }

  #join(key: string, exchanging: Exchanging, asker: Asker): Promise<Authorization> {
    const { token, askers, place, trace } = exchanging;
    if (trace !== undefined) asker.awaits?.(trace);
    askers.add(asker);
    asker.gone?.addEventListener('abort', () => {
      askers.delete(asker);
      // Nobody should join an exchange that will not come.
      if (askers.size === 0 && place.leave()) this.#forget(key, exchanging);
    });
    return abortable(token, asker.gone, () => this.#ownDoing(this.#whyNot('left')));
  }

  #forget(key: string, exchanging: Exchanging): void {
    if (this.#exchanging.get(key) === exchanging) this.#exchanging.delete(key);
  }

  /** @throws {TokenUnavailable} while the provider is away. */
  #assertThere(caller: string | undefined): void {
    const away = this.#away;
    if (away === undefined || this.#options.clock.monotonicMs() >= away.untilMs) return;
    if (away.of === undefined || away.of === caller) throw errorOf(away.why);
  }

  /** An exchange that has not begun says nothing of the provider or the subject. */
  #ownDoing(why: string): TokenUnavailable {
    return new TokenUnavailable(`credential ${this.#options.name}: ${why}`, AWAY_FOR_MS);
  }

  #whyNot(turn: Exclude<Turn, 'come'>): string {
    switch (turn) {
      case 'left':
        return 'nobody waits for the exchange any more';
      case 'too_late':
        return `the turn of the exchange has not come within ${this.#options.timeoutMs} ms`;
      case 'crowded_out':
        return `${MAX_EXCHANGES} exchanges are under way`;
    }
  }

  async #inTurn(wanted: Wanted, place: Place): Promise<Authorization> {
    const turn = await place.turn;
    if (turn !== 'come') {
      throw this.#ownDoing(this.#whyNot(turn));
    }
    this.#assertThere(wanted.caller);
    return this.#exchange(wanted);
  }

  async #exchange({ key, subject, caller, begun }: Wanted): Promise<Authorization> {
    const { clock, exchange } = this.#options;
    const requestedAt = clock.now();
    const held = this.#held.peek(key);
    const ending =
      held !== undefined && isAboutToEnd(held.sendableUntil, requestedAt)
        ? accessTokenIn(held.authorization)
        : undefined;
    const outcome = await exchange(subject, begun, ending);
    if (outcome.result === 'success' && outcome.lifetimeMs === 0) {
      await new Promise<void>((resolve) => clock.after(ENDED_TOKEN_DELAY_MS, resolve));
      return await this.#exchange({ key, subject, caller, begun });
    }
    if (outcome.result !== 'success') throw errorOf(this.#fail(key, caller, outcome));
    this.#away = undefined;
    this.#refusesAll = false;
    this.#suspected = undefined;
    const authorization = outcome.boundToken ?? `Bearer ${outcome.accessToken}`;
    this.#failed.delete(key);
    this.#held.set(key, {
      authorization,
      requestedAtMs: requestedAt.monotonicMs,
      sendableUntil: this.#sendableUntil(subject, requestedAt, outcome.lifetimeMs),
    });
    return authorization;
  }

  /** A subject's token is sent no longer than the subject itself lives. */
  #sendableUntil(subject: string, requestedAt: Instant, lifetimeMs: number): Instant {
    const own = ownLifetime(subject, requestedAt.wallMs);
    if (own === undefined) return later(requestedAt, sendableMs(lifetimeMs));
    if (own.lifetimeMs !== undefined) {
      return later(requestedAt, sendableMs(Math.min(lifetimeMs, own.lifetimeMs)));
    }
    // By the provider's clock there may be a moment left.
    return later(this.#options.clock.now(), Math.min(OF_ENDED_FOR_MS, sendableMs(lifetimeMs)));
  }

  /**
   * One caller may cause a missing answer, and one subject a rejected client. So a failure concerns all only after two callers met
   * it in a row, and all of a caller after two of its subjects did. If callers are not told apart, a missing answer concerns all at
   * once.
   */
  #concerned(
    key: string,
    caller: string | undefined,
    refusal: RefusedGrant,
  ): { readonly of: Concerned } | 'itself' {
    const failure = commonFailure(refusal);
    const before = this.#suspected?.failure === failure ? this.#suspected : undefined;
    this.#suspected = failure === undefined ? undefined : (before ?? { failure, key, caller });
    if (failure === 'unanswered' && caller === undefined) return { of: undefined };
    if (before === undefined) return 'itself';
    if (before.caller !== caller) return { of: undefined };
    return before.key === key ? 'itself' : { of: caller };
  }

  #fail(key: string, caller: string | undefined, refusal: RefusedGrant): Why {
    const { result, detail, retryAfterMs = 0 } = refusal;
    const { name, clock } = this.#options;
    const nowMs = clock.monotonicMs();
    const concerned = this.#concerned(key, caller, refusal);
    if (isOfSubject(refusal)) {
      const message = `credential ${name}: the provider does not exchange the token of this request (${detail})`;
      const why = { code: 'subject_token_refused', message } as const;
      this.#keepFailed(key, { kind: 'refused', why, untilMs: nowMs + REFUSED_FOR_MS });
      return why;
    }
    this.#refusesAll = concerned !== 'itself' && concerned.of === undefined;
    const refusedForMs = refusal.blames === 'client' ? REJECTED_FOR_MS : REFUSED_FOR_MS;
    const leastMs = result === 'rejected' ? refusedForMs : AWAY_FOR_MS;
    const forMs = Math.max(leastMs, Math.min(retryAfterMs, MAX_RETRY_AFTER_MS));
    const message = `credential ${name}: the token of the request could not be exchanged: ${result} (${detail})`;
    const why = { code: 'token_unavailable', message, retryAfterMs: forMs } as const;
    const untilMs = nowMs + forMs;
    if (concerned === 'itself') this.#keepFailed(key, { kind: 'failed', why, untilMs });
    else this.#turnAway({ why, untilMs, of: concerned.of }, nowMs);
    return why;
  }

  /** One caller's failure does not shorten what concerns all. */
  #turnAway(away: Away, nowMs: number): void {
    const before = this.#away;
    const isOfAll = before !== undefined && before.of === undefined && nowMs < before.untilMs;
    if (away.of === undefined || !isOfAll) this.#away = away;
  }

  #keepFailed(key: string, failed: Failed): void {
    this.#held.delete(key);
    this.#failed.set(key, failed);
  }
}

function errorOf(why: Why): SidecarError {
  if (why.code === 'token_unavailable') return new TokenUnavailable(why.message, why.retryAfterMs);
  return new SidecarError(why.code, why.message);
}

function keyOf(subject: string): string {
  return createHash('sha256').update(subject, 'latin1').digest('base64');
}
