/**
 * Bounds on what costs a peer less than it costs this side, and achieves nothing. Each kind has a token bucket that refills
 * with time and with useful work, so that a busy connection may do more of it than an idle one. Going beyond it is an
 * attack, or a fault that looks like one: ENHANCE_YOUR_CALM.
 *
 * ```ts
 * const fault = abuse.spend('ping', nowMs); // a reason ends the connection
 * abuse.earn('window_update', 2);           // DATA was sent
 * ```
 */

import { type Rate, TokenBucket } from '../../platform/limits/token-bucket.ts';
import type { FaultReason } from './errors.ts';

/** Each kind, and the reason for too much of it. */
const REASONS = {
  /** The peer resets a stream (rapid reset, CVE-2023-44487). */
  reset: 'reset_flood',
  /** The peer makes this side reset one (MadeYouReset, CVE-2025-8671). */
  fault: 'fault_flood',
  /** PING without ACK. */
  ping: 'ping_flood',
  settings: 'settings_flood',
  /** DATA without data and end. */
  empty_data: 'empty_data_flood',
  /** Those that are tiny, or give back what was never sent: others are bounded by what was sent. */
  window_update: 'window_update_flood',
  goaway: 'goaway_flood',
  /** PRIORITY and frames of unknown types, and frames for streams that are closed. */
  ignored_frame: 'ignored_frame_flood',
} as const satisfies Record<string, FaultReason>;

export type AbuseKind = keyof typeof REASONS;

export type AbuseLimits = Readonly<Record<AbuseKind, Rate>>;

/** Far above what well-meaning clients do, far below what hurts. */
export const DEFAULT_ABUSE_LIMITS: AbuseLimits = {
  reset: { burst: 1000, perSecond: 50 },
  fault: { burst: 200, perSecond: 10 },
  ping: { burst: 200, perSecond: 20 },
  settings: { burst: 20, perSecond: 1 },
  empty_data: { burst: 200, perSecond: 20 },
  window_update: { burst: 2000, perSecond: 200 },
  goaway: { burst: 20, perSecond: 1 },
  ignored_frame: { burst: 2000, perSecond: 100 },
};

/** One for each connection. Buckets are made when first spent from: most never are. */
export class AbuseCounter {
  readonly #limits: AbuseLimits;
  readonly #buckets: Partial<Record<AbuseKind, TokenBucket>> = {};

  constructor(limits: AbuseLimits) {
    this.#limits = limits;
  }

  /** Spends one of a kind; returns the reason to end the connection if that is one too many. */
  spend(kind: AbuseKind, nowMs: number): FaultReason | undefined {
    const bucket = this.#buckets[kind] ?? new TokenBucket(this.#limits[kind]);
    this.#buckets[kind] = bucket;
    return bucket.take(nowMs) ? undefined : REASONS[kind];
  }

  /** Useful work was done, which allows for `count` more of a kind. */
  earn(kind: AbuseKind, count: number): void {
    this.#buckets[kind]?.refund(count);
  }
}
