/** How the time that a program has to end is shared out. */

export interface DrainShares {
  /** New connections are still taken, while others learn that it ends. */
  readonly leaveMs: number;
  /** At the least, for requests in flight once no new ones are taken. */
  readonly drainMs: number;
  /** For the last spans. */
  readonly spansMs: number;
}

/** What a drain leaves for spans of its own time: what it has cut is just what somebody looks for. */
const KEPT_FOR_SPANS_MS = 1000;
/** At the most, of all the time that there is. */
const PART_FOR_SPANS = 0.2;

/** Of the time that spans leave. */
const PART_FOR_DRAIN = 0.2;

/** @param leaveDelayMs how long new connections should be taken; they are for less where the time is short. */
export function drainShares(
  drainTimeoutMs: number,
  { leaveDelayMs, hasSpans }: { readonly leaveDelayMs: number; readonly hasSpans: boolean },
): DrainShares {
  const spansMs = hasSpans ? Math.min(KEPT_FOR_SPANS_MS, drainTimeoutMs * PART_FOR_SPANS) : 0;
  const restMs = drainTimeoutMs - spansMs;
  const drainMs = restMs * PART_FOR_DRAIN;
  return { leaveMs: Math.min(leaveDelayMs, restMs - drainMs), drainMs, spansMs };
}
