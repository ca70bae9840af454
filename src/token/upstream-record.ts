/**
 * What one upstream has made of a credential's tokens, and when its 401 is worth a renewal. Pure. A token that it took
 * and then refuses was revoked most likely; an upstream that refuses one token after another is not cured by more.
 */

/** Undefined while the upstream has neither accepted nor refused. */
export type UpstreamRecord =
  | {
      readonly state: 'accepting';
      /** The token it took last, by its number: a record may outlive it for long. */
      readonly token: number;
    }
  | {
      readonly state: 'refusing';
      /** Monotonic ms of the renewal that its 401 last forced. */
      readonly forcedAtMs: number;
      /** Forced renewals in a row, before that one, whose tokens it never took. */
      readonly futile: number;
    };

const FIRST_COOLDOWN_MS = 30_000;
const LONGEST_COOLDOWN_MS = 600_000;

/** How soon an upstream that refused the last forced token too may force another, after `futile` such before it. */
export function refusalCooldownMs(futile: number): number {
  return Math.min(LONGEST_COOLDOWN_MS, FIRST_COOLDOWN_MS * 2 ** Math.min(futile, 30));
}

/** Whether a 401 may force a renewal, as far as this upstream goes. */
export function mayForceRenewal(record: UpstreamRecord | undefined, nowMs: number): boolean {
  return record?.state !== 'refusing' || nowMs - record.forcedAtMs >= refusalCooldownMs(record.futile);
}

/** Its 401 has forced a renewal. */
export function afterForcedRenewal(record: UpstreamRecord | undefined, nowMs: number): UpstreamRecord {
  if (record?.state !== 'refusing') return { state: 'refusing', forcedAtMs: nowMs, futile: 0 };
  // Counted from the last forced renewal, not from the token: a scheduled one in between cures the upstream no better.
  const quiet = nowMs - record.forcedAtMs >= 2 * refusalCooldownMs(record.futile);
  return { state: 'refusing', forcedAtMs: nowMs, futile: quiet ? 0 : record.futile + 1 };
}

/**
 * Upstreams that are remembered of one credential: those heard of last. Names come and go with the configuration, and in the broker with
 * the namespaces that report.
 */
const MOST_REMEMBERED = 256;

/** With the record of an upstream, in the place of the one that has been silent for longest where there are too many. */
export function withRecord(
  records: ReadonlyMap<string, UpstreamRecord>,
  upstream: string,
  record: UpstreamRecord,
): ReadonlyMap<string, UpstreamRecord> {
  const after = new Map(records);
  // The order of a Map is that of its entries' coming.
  after.delete(upstream);
  after.set(upstream, record);
  for (const oldest of after.keys()) {
    if (after.size <= MOST_REMEMBERED) break;
    after.delete(oldest);
  }
  return after;
}
