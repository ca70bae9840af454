/**
 * Bounds on what costs a peer less than it costs this side, and achieves nothing. Each kind has an allowance that refills
 * with time and with useful work, so that a busy connection may do more of it than an idle one. Going beyond it is an
 * attack, or a fault that looks like one: ENHANCE_YOUR_CALM.
 *
 * ```ts
 * const fault = abuse.spend('ping', nowMs); // a reason ends the connection
 * abuse.earn('window_update', 2);           // DATA was sent
 * ```
 */

import type { FaultReason } from './errors.ts';

interface Allowance {
  /** How many at once. */
  readonly burst: number;
  /** How many per second in the long run. */
  readonly perSecond: number;
}

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

export type AbuseLimits = Readonly<Record<AbuseKind, Allowance>>;

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

interface Account {
  readonly allowance: Allowance;
  left: number;
  asOfMs: number;
}

/** One for each connection. Accounts are opened when first spent from: most never are. */
export class AbuseCounter {
  readonly #limits: AbuseLimits;
  readonly #accounts: Partial<Record<AbuseKind, Account>> = {};

  constructor(limits: AbuseLimits) {
    this.#limits = limits;
  }

  /** Spends one of a kind; returns the reason to end the connection if that is one too many. */
  spend(kind: AbuseKind, nowMs: number): FaultReason | undefined {
    const account = this.#accountOf(kind, nowMs);
    const { burst, perSecond } = account.allowance;
    account.left = Math.min(burst, account.left + ((nowMs - account.asOfMs) * perSecond) / 1000);
    account.asOfMs = nowMs;
    if (account.left < 1) return REASONS[kind];
    account.left--;
    return undefined;
  }

  /** Useful work was done, which allows for `count` more of a kind. */
  earn(kind: AbuseKind, count: number): void {
    const account = this.#accounts[kind];
    if (account !== undefined) account.left = Math.min(account.allowance.burst, account.left + count);
  }

  #accountOf(kind: AbuseKind, nowMs: number): Account {
    const account = this.#accounts[kind];
    if (account !== undefined) return account;
    const allowance = this.#limits[kind];
    const opened = { allowance, left: allowance.burst, asOfMs: nowMs };
    this.#accounts[kind] = opened;
    return opened;
  }
}
