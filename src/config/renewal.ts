/**
 * When a token is renewed, by default and by settings. `src/token/schedule.ts` computes by it; the broker's own values are in
 * `src/broker/brokered-tokens.ts`. A new key is shown only if `src/sidecar/status/configuration.ts` lists it. The reference
 * repeats the defaults in `scripts/configuration/settings.ts`.
 */

import * as v from 'valibot';
import { formatted, fraction, words } from './value-schemas.ts';
import { formats } from './values.ts';

export interface RenewalPolicy {
  /** Fraction of the lifetime. */
  readonly at: number;
  /** Subtracted at random, at most, so that a fleet does not move in step. */
  readonly jitter: number;
  /** The first grant is delayed by a random time up to this. */
  readonly startupJitterMs: number;
  /** Counted from the last grant. */
  readonly minIntervalMs: number;
  /** The longest time between attempts without a token, unless credentials were rejected. */
  readonly recoveryMs: number;
  /** Unbounded by default. */
  readonly shortestRetryMs?: number;
  /** For a token that states none and is no JWT. */
  readonly defaultLifetimeMs: number;
  /** Refused by default. */
  readonly zeroLifetime?: 'endless';
}

export const DEFAULT_RENEWAL: RenewalPolicy = {
  at: 0.75,
  jitter: 0.1,
  startupJitterMs: 50,
  minIntervalMs: 1000,
  recoveryMs: 30_000,
  defaultLifetimeMs: 300_000,
};

export const renewal = v.strictObject(
  {
    at: v.optional(fraction(0.1, 0.95)),
    jitter: v.optional(fraction(0, 0.5)),
    startupJitter: v.optional(formatted(formats.duration)),
    minInterval: v.optional(formatted(formats.duration)),
    recovery: v.optional(formatted(formats.recoveryTime)),
    defaultLifetime: v.optional(formatted(formats.duration)),
    zeroLifetime: v.optional(words(['refused', 'endless'])),
  },
  'a mapping',
);

export function resolveRenewal(entry: v.InferOutput<typeof renewal> | undefined): RenewalPolicy {
  return {
    at: entry?.at ?? DEFAULT_RENEWAL.at,
    jitter: entry?.jitter ?? DEFAULT_RENEWAL.jitter,
    startupJitterMs: entry?.startupJitter ?? DEFAULT_RENEWAL.startupJitterMs,
    minIntervalMs: entry?.minInterval ?? DEFAULT_RENEWAL.minIntervalMs,
    recoveryMs: entry?.recovery ?? DEFAULT_RENEWAL.recoveryMs,
    defaultLifetimeMs: entry?.defaultLifetime ?? DEFAULT_RENEWAL.defaultLifetimeMs,
    ...(entry?.zeroLifetime === 'endless' ? { zeroLifetime: 'endless' as const } : {}),
  };
}
