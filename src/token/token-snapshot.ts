import type { WatchMode } from '../platform/mounted/directory-watch.ts';
import type { CredentialsReading } from './credentials.ts';
import type { TokenResponse } from './provider/token-response.ts';
import type { FailedGrant, GrantReason } from './token-state.ts';

/** What may be shown of a credential: no token, no secret, no client id. Instants are wall time in ms. */
export interface TokenSnapshot {
  readonly name: string;
  /** The pod's start and readiness wait for its token. */
  readonly required: boolean;
  readonly tokens: TokensKind;
  /** Since when its token is maintained: the start, or the reload that brought it. */
  readonly openedAtMs: number;
  /** Where tokens are requested, as it may be shown; undefined while the issuer has not yet said. */
  readonly tokenUrl: string | undefined;
  readonly ready: boolean;
  readonly obtainedFirstToken: boolean;
  readonly requestedAtMs: number | undefined;
  readonly expiresAtMs: number | undefined;
  readonly renewalAtMs: number | undefined;
  readonly renewalReason: GrantReason | undefined;
  readonly grantInFlight: boolean;
  readonly consecutiveFailures: number;
  readonly lastFailure: FailedGrant | undefined;
  /** The state of the mounted Secret, and what is wrong with it if it cannot be used. */
  readonly credentials: {
    readonly state: CredentialsReading['state'];
    readonly detail: string | undefined;
    /** Since when it cannot be used. */
    readonly unusableSinceMs?: number | undefined;
    /** The held token was granted to the previous credentials, because the newest are rejected. */
    readonly previousInUse: boolean;
    /** When the first such token was granted. */
    readonly previousInUseSinceMs?: number | undefined;
    /** How changes of the mounted Secret are noticed. */
    readonly watchedBy: WatchMode['by'];
  };
  /** When the first grant since the last success failed. */
  readonly failingSinceMs: number | undefined;
}

/**
 * What a credential's tokens are granted for.
 * - `held`: the pod; one token is held and renewed, whoever asks.
 * - `exchanged`: the token of each request. None is held before one asks; `refusesAll` while the last failure was one
 *   that every request would meet.
 */
type TokensKind = { readonly kind: 'held' } | { readonly kind: 'exchanged'; readonly refusesAll: boolean };

/** The outcomes of a credential's grants, for a person; probes and metrics do without. */
export interface PastGrants {
  /** Oldest first, at most twenty. */
  readonly latest: readonly FinishedGrant[];
  /** The minutes of the last two hours in which grants ended, oldest first. */
  readonly minutes: readonly GrantMinute[];
}

export interface GrantMinute {
  /** The beginning of the minute. */
  readonly atMs: number;
  readonly succeeded: number;
  readonly failed: number;
}

export interface FinishedGrant {
  readonly atMs: number;
  readonly reason: GrantReason;
  readonly result: TokenResponse['result'];
  readonly durationMs: number;
}
