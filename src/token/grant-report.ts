import type { Logger } from '../platform/log/logger.ts';
import { type Instant, remainingMs } from '../platform/time/clock.ts';
import type { TokenResponse } from './provider/token-response.ts';
import { type GrantInFlight, type TokenState, validToken } from './token-state.ts';

export interface EndedGrant {
  readonly grant: GrantInFlight;
  readonly outcome: TokenResponse;
  readonly durationMs: number;
  /** The state after the grant. */
  readonly state: TokenState;
  readonly now: Instant;
  /** Where it was requested: the token endpoint, or the issuer that has not named it. */
  readonly where: string | undefined;
}

/** One log line for each finished grant: its outcome and what is next. Never a token. */
export function reportGrant(
  log: Logger,
  { grant, outcome, durationMs, state, now, where }: EndedGrant,
): void {
  const facts = {
    ...(where === undefined ? {} : { tokenUrl: where }),
    reason: grant.reason,
    durationMs: Math.round(durationMs),
    ...(outcome.result === 'success' ? finite({ lifetimeMs: Math.round(outcome.lifetimeMs) }) : {}),
    ...(state.due === undefined ? {} : { nextInMs: Math.round(remainingMs(state.due.at, now)) }),
  };
  if (outcome.result !== 'success') {
    const held = validToken(state, now);
    log.warn(
      {
        ...facts,
        result: outcome.result,
        detail: outcome.detail,
        consecutiveFailures: state.consecutiveFailures,
        ...finite({
          heldTokenEndsInMs: held === undefined ? 0 : Math.round(remainingMs(held.expiresAt, now)),
        }),
      },
      'no token obtained',
    );
  } else if (outcome.lifetimeMs === 0) {
    log.info(facts, 'the held token ends within the second: the provider gives it until then');
  } else if (outcome.sharedAgeMs !== undefined) {
    log.info(
      { ...facts, ageMs: Math.round(outcome.sharedAgeMs) },
      'token taken that another replica has asked for',
    );
  } else if (grant.reason === 'previous_credentials') {
    log.warn(facts, 'token obtained with the previous credentials: the newest are rejected');
  } else {
    log.info(facts, 'token obtained');
  }
}

/** Leaves out facts of a token that never expires. */
function finite(fact: Readonly<Record<string, number>>): Readonly<Record<string, number>> {
  return Object.values(fact).every(Number.isFinite) ? fact : {};
}
