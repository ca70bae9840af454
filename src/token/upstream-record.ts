/** How an upstream has judged tokens, and when its 401 is worth a renewal. More tokens do not cure refusals in a row. */

import { doublingMs } from '../platform/time/async.ts';

/** Undefined while the upstream has neither accepted nor refused. */
export type UpstreamRecord =
  | {
      readonly state: 'accepting';
      /** The number of the token it took last. */
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

/** Until an upstream that refused the last forced token may force another. */
function refusalCooldownMs(futile: number): number {
  return doublingMs(futile, COOLDOWN);
}

export function mayForceRenewal(record: UpstreamRecord | undefined, nowMs: number): boolean {
  return record?.state !== 'refusing' || nowMs - record.forcedAtMs >= refusalCooldownMs(record.futile);
}

export function afterForcedRenewal(record: UpstreamRecord | undefined, nowMs: number): UpstreamRecord {
  if (record?.state !== 'refusing') return { state: 'refusing', forcedAtMs: nowMs, futile: 0 };
  // A scheduled renewal in between cures no better.
  const quiet = nowMs - record.forcedAtMs >= 2 * refusalCooldownMs(record.futile);
  return { state: 'refusing', forcedAtMs: nowMs, futile: quiet ? 0 : record.futile + 1 };
}

/** Upstreams per credential. In the broker they are the reporting namespaces. */
const MAX_REMEMBERED = 256;

/** Beyond the bound, the longest silent goes. */
export function withRecord(
  records: ReadonlyMap<string, UpstreamRecord>,
  upstream: string,
  record: UpstreamRecord,
): ReadonlyMap<string, UpstreamRecord> {
  const after = new Map(records);
  after.delete(upstream);
  after.set(upstream, record);
  for (const oldest of after.keys()) {
    if (after.size <= MAX_REMEMBERED) break;
    after.delete(oldest);
  }
  return after;
}
