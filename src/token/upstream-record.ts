/**
 * How one upstream has judged a credential's tokens, and when its 401 is worth a renewal. Pure. If it refuses a token
 * that it took before, the token was most likely revoked; if it refuses one token after another, more will not help.
 */

import { doublingMs } from '../platform/time/async.ts';

/** Undefined while the upstream has neither accepted nor refused. */
export type UpstreamRecord =
  | {
      readonly state: 'accepting';
      /** The number of the token it took last, which the record may long outlive. */
      readonly token: number;
    }
  | {
      readonly state: 'refusing';
      /** Monotonic ms of the last renewal that its 401 forced. */
      readonly forcedAtMs: number;
      /** Forced renewals in a row, before that one, whose tokens it never took. */
      readonly futile: number;
    };

const COOLDOWN = { firstMs: 30_000, maxMs: 600_000 };

/** How soon an upstream that refused the last forced token too may force another, after `futile` earlier ones. */
function refusalCooldownMs(futile: number): number {
  return doublingMs(futile, COOLDOWN);
}

/** Whether a 401 of this upstream may force a renewal, as far as its record goes. */
export function mayForceRenewal(record: UpstreamRecord | undefined, nowMs: number): boolean {
  return record?.state !== 'refusing' || nowMs - record.forcedAtMs >= refusalCooldownMs(record.futile);
}

/** The record after its 401 has forced a renewal. */
export function afterForcedRenewal(record: UpstreamRecord | undefined, nowMs: number): UpstreamRecord {
  if (record?.state !== 'refusing') return { state: 'refusing', forcedAtMs: nowMs, futile: 0 };
  // Counted from the last forced renewal, not from the token: a scheduled one in between cures the upstream no better.
  const quiet = nowMs - record.forcedAtMs >= 2 * refusalCooldownMs(record.futile);
  return { state: 'refusing', forcedAtMs: nowMs, futile: quiet ? 0 : record.futile + 1 };
}

/**
 * How many upstreams are remembered for one credential: those heard of last. Names come and go with the configuration,
 * and in the broker with the namespaces that report.
 */
const MAX_REMEMBERED = 256;

/** Adds the record of an upstream. Beyond the bound, the one that has been silent for longest goes. */
export function withRecord(
  records: ReadonlyMap<string, UpstreamRecord>,
  upstream: string,
  record: UpstreamRecord,
): ReadonlyMap<string, UpstreamRecord> {
  const after = new Map(records);
  // A Map keeps the order of insertion.
  after.delete(upstream);
  after.set(upstream, record);
  for (const oldest of after.keys()) {
    if (after.size <= MAX_REMEMBERED) break;
    after.delete(oldest);
  }
  return after;
}
