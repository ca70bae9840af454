/**
 * Bounds what costs a peer less than this side, by a token bucket a kind that refills with time and useful
 * work. An empty one ends the connection with ENHANCE_YOUR_CALM.
 */

import { type Rate, TokenBucket } from '../../platform/limits/token-bucket.ts';
import type { FaultReason } from './errors.ts';

const REASONS = {
  /** The peer resets (rapid reset, CVE-2023-44487). */
  reset: 'reset_flood',
  /** The peer makes this side reset (MadeYouReset, CVE-2025-8671). */
  fault: 'fault_flood',
  /** PING without ACK. */
  ping: 'ping_flood',
  settings: 'settings_flood',
  /** DATA without data and end. */
  empty_data: 'empty_data_flood',
  /** Tiny ones, or for what was never sent. */
  window_update: 'window_update_flood',
  goaway: 'goaway_flood',
  /** PRIORITY, unknown types, frames for closed streams. */
  ignored_frame: 'ignored_frame_flood',
} as const satisfies Record<string, FaultReason>;

export type AbuseKind = keyof typeof REASONS;

export type AbuseLimits = Readonly<Record<AbuseKind, Rate>>;

/** Well-meaning clients do far less, and it does not hurt. */
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

/** Serves one connection. Most buckets are never needed, and not made. */
export class AbuseCounter {
  readonly #limits: AbuseLimits;
  readonly #buckets: Partial<Record<AbuseKind, TokenBucket>> = {};

  constructor(limits: AbuseLimits) {
    this.#limits = limits;
  }

  /** Returns the reason to end the connection. */
  spend(kind: AbuseKind, nowMs: number): FaultReason | undefined {
    const bucket = this.#buckets[kind] ?? new TokenBucket(this.#limits[kind]);
    this.#buckets[kind] = bucket;
    return bucket.take(nowMs) ? undefined : REASONS[kind];
  }

  /** Useful work allows for `count` more. */
  earn(kind: AbuseKind, count: number): void {
    this.#buckets[kind]?.refund(count);
  }
}
