import { afterFailure, figuresOf, type Incident } from '../platform/log/incidents.ts';
import type { Logger } from '../platform/log/logger.ts';
import type { WatchMode } from '../platform/mounted/directory-watch.ts';
import { type Instant, remainingMs } from '../platform/time/clock.ts';
import type { GrantTrace } from './bearer-source.ts';
import type { ClientKey } from './client/client-authentication.ts';
import type { CredentialsResult } from './credentials.ts';
import type { ProofReport } from './dpop/proof-maker.ts';
import type { GrantedToken, TokenResponse } from './provider/token-response.ts';
import {
  type FailedTokenRequest,
  type TokenRequestInFlight,
  type TokenRequestReason,
  type TokenState,
  validToken,
} from './token-state.ts';

interface EndedGrant {
  readonly grant: TokenRequestInFlight;
  readonly outcome: TokenResponse;
  readonly durationMs: number;
  readonly state: TokenState;
  readonly now: Instant;
  /** The token endpoint, or the issuer until it has named one. */
  readonly where: string | undefined;
  /** Of failures before. */
  readonly incident: Incident | undefined;
  /** What to do about the last failure. */
  readonly advise: () => string | undefined;
}

/**
 * A line for each token, and lines of failures as `Incidents` has them. Never a token.
 * @param log without a limit of its own.
 * @returns the incident that goes on.
 */
export function reportGrant(
  log: Logger,
  { grant, outcome, durationMs, state, now, where, incident, advise }: EndedGrant,
): Incident | undefined {
  const facts = {
    ...(where === undefined ? {} : { tokenUrl: where }),
    reason: grant.reason,
    durationMs: Math.round(durationMs),
    ...(outcome.result === 'success' ? finite({ lifetimeMs: Math.round(outcome.lifetimeMs) }) : {}),
    ...(state.due === undefined ? {} : { nextInMs: Math.round(remainingMs(state.due.at, now)) }),
  };
  if (outcome.result === 'success' && grant.reason !== 'previous_credentials') {
    const ended = incident && {
      failures: incident.failures,
      lastedMs: Math.round(now.monotonicMs - incident.sinceMs),
    };
    const { sharedAgeMs: ageMs } = outcome;
    log.info(
      { ...facts, ...(ageMs === undefined ? {} : { ageMs: Math.round(ageMs) }), ...ended },
      textOf(outcome),
    );
    return undefined;
  }
  const failure =
    outcome.result === 'success' ? undefined : { result: outcome.result, detail: outcome.detail };
  const held = validToken(state, now);
  // That no token is left is news.
  const cause = JSON.stringify([failure, held === undefined]);
  const next = afterFailure(incident, cause, now.monotonicMs, failure === undefined ? 0 : 1);
  const heldTokenEndsInMs = held === undefined ? 0 : Math.round(remainingMs(held.expiresAt, now));
  log[next.isTold ? 'warn' : 'debug'](
    { ...facts, ...failure, advice: advise(), ...finite({ heldTokenEndsInMs }), ...figuresOf(next) },
    failure === undefined
      ? 'token obtained with the previous credentials: the newest are rejected'
      : 'no token obtained',
  );
  return next;
}

function textOf({ lifetimeMs, sharedAgeMs }: GrantedToken): string {
  if (lifetimeMs === 0) return 'the held token ends within the second: the provider gives it until then';
  return sharedAgeMs === undefined ? 'token obtained' : 'token taken that another replica has asked for';
}

/** Leaves out facts of a token that never expires. */
function finite(fact: Readonly<Record<string, number>>): Readonly<Record<string, number>> {
  return Object.values(fact).every(Number.isFinite) ? fact : {};
}

/** What may be shown of a credential: no token, secret or client id. Instants are wall time in ms. */
export interface TokenSnapshot {
  readonly name: string;
  /** The pod's start and readiness wait for it. */
  readonly required: boolean;
  readonly tokens: TokensKind;
  /** The start, or the reload that brought it. */
  readonly openedAtMs: number;
  /** Undefined until the issuer has named one. */
  readonly tokenUrl: string | undefined;
  readonly ready: boolean;
  readonly obtainedFirstToken: boolean;
  readonly requestedAtMs: number | undefined;
  readonly expiresAtMs: number | undefined;
  readonly renewalAtMs: number | undefined;
  readonly renewalReason: TokenRequestReason | undefined;
  readonly grantInFlight: boolean;
  readonly consecutiveFailures: number;
  readonly lastFailure: FailedTokenRequest | undefined;
  readonly credentials: {
    readonly state: CredentialsResult['state'];
    readonly detail: string | undefined;
    readonly unusableSinceMs?: number | undefined;
    /** The first refusal of a request for a token by the newest, since these last got one. */
    readonly rejectedSinceMs?: number | undefined;
    /** The held token was granted to the previous credentials, since the newest are rejected. */
    readonly previousInUse: boolean;
    /** The held token was granted to earlier credentials, and the provider is not known to reject them. */
    readonly previousServes?: boolean;
    readonly clientKey?: ClientKey | undefined;
    readonly watchedBy: WatchMode['by'];
  };
  readonly failingSinceMs: number | undefined;
  readonly lastAnswerAtMs?: number | undefined;
  /** Absent where tokens are bound to no key. */
  readonly proofs?: ProofReport | undefined;
}

/** `refusesAll`: every request would meet the last failure. */
type TokensKind = { readonly kind: 'held' } | { readonly kind: 'exchanged'; readonly refusesAll: boolean };

export interface PastGrants {
  /** Oldest first, at most twenty. */
  readonly latest: readonly FinishedGrant[];
  /** Minutes of the last two hours, oldest first. */
  readonly minutes: readonly GrantMinute[];
}

interface GrantMinute {
  readonly atMs: number;
  readonly succeeded: number;
  readonly failed: number;
}

interface FinishedGrant {
  readonly atMs: number;
  readonly reason: TokenRequestReason;
  readonly result: TokenResponse['result'];
  readonly durationMs: number;
}

const LATEST = 20;
const MINUTES = 120;

const MINUTE_MS = 60_000;
const MOST = 0xffff;

export class TokenRequestHistory {
  readonly #latest: FinishedGrant[] = [];
  /** The slot's minute since the epoch: a stepped clock leaves no wrong counts. */
  readonly #minutes = new Int32Array(MINUTES);
  readonly #succeeded = new Uint16Array(MINUTES);
  readonly #failed = new Uint16Array(MINUTES);
  #failingSinceMs: number | undefined;

  /** Wall time of the first failure since the last success. */
  get failingSinceMs(): number | undefined {
    return this.#failingSinceMs;
  }

  add(grant: FinishedGrant): void {
    this.#latest.push(grant);
    if (this.#latest.length > LATEST) this.#latest.shift();
    const succeeded = grant.result === 'success';
    if (succeeded) this.#failingSinceMs = undefined;
    else this.#failingSinceMs ??= grant.atMs;
    const minute = Math.floor(grant.atMs / MINUTE_MS);
    const slot = minute % MINUTES;
    if (this.#minutes[slot] !== minute) {
      this.#minutes[slot] = minute;
      this.#succeeded[slot] = 0;
      this.#failed[slot] = 0;
    }
    const tally = succeeded ? this.#succeeded : this.#failed;
    tally[slot] = Math.min(MOST, (tally[slot] as number) + 1);
  }

  /** @param nowMs wall time. */
  read(nowMs: number): PastGrants {
    return { latest: [...this.#latest], minutes: this.#minutesUntil(nowMs) };
  }

  #minutesUntil(nowMs: number): readonly GrantMinute[] {
    const last = Math.floor(nowMs / MINUTE_MS);
    const found: GrantMinute[] = [];
    for (let minute = last - MINUTES + 1; minute <= last; minute++) {
      const slot = minute % MINUTES;
      if (this.#minutes[slot] !== minute) continue;
      const [succeeded, failed] = [this.#succeeded[slot] as number, this.#failed[slot] as number];
      found.push({ atMs: minute * MINUTE_MS, succeeded, failed });
    }
    return found;
  }
}

export interface GrantTracer {
  begin(credential: string, reason: TokenRequestReason): GrantSpan;
}

export interface GrantSpan {
  readonly trace: GrantTrace;
  end(ended: EndedGrantSpan): void;
}

/** Holds no token and no detail of an answer. */
interface EndedGrantSpan {
  /** `given_up`: another took its place, or the program ends. */
  readonly result: TokenResponse['result'] | 'given_up';
  /** The token endpoint, or the issuer until it has named one. */
  readonly where: string | undefined;
  readonly status: number | undefined;
}
