/** How a program shares out the time that it has to end. */

interface DrainShares {
  /** How long new connections are still accepted, while others learn that it ends. */
  readonly delayMs: number;
  /** At least this long for requests in flight, once no new ones are accepted. */
  readonly drainMs: number;
  /** For the last spans. */
  readonly spansMs: number;
}

/** The time that a drain leaves for spans: the requests it cut off are just those that somebody will look for. */
const KEPT_FOR_SPANS_MS = 1000;
/** At most this fraction of the whole time. */
const PART_FOR_SPANS = 0.2;

/** Fraction of the time that remains after spans. */
const PART_FOR_DRAIN = 0.2;

/** @param drainDelayMs how long new connections should be accepted; shortened if time is short. */
export function drainShares(
  drainTimeoutMs: number,
  { drainDelayMs, hasSpans }: { readonly drainDelayMs: number; readonly hasSpans: boolean },
): DrainShares {
  const spansMs = hasSpans ? Math.min(KEPT_FOR_SPANS_MS, drainTimeoutMs * PART_FOR_SPANS) : 0;
  const restMs = drainTimeoutMs - spansMs;
  const drainMs = restMs * PART_FOR_DRAIN;
  return { delayMs: Math.min(drainDelayMs, restMs - drainMs), drainMs, spansMs };
}
