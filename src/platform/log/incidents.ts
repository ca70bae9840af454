/** What the log tells of something that fails again and again: each cause once in a growing window, and the end. */

import type { Clock } from '../time/clock.ts';

export interface Incident {
  /** The first failure, in monotonic ms. */
  readonly sinceMs: number;
  readonly lastMs: number;
  readonly failures: number;
  /** Since the last line. */
  readonly untold: number;
  /** Whether the latest failure gets a line. */
  readonly isTold: boolean;
  readonly windowEndMs: number;
  /** The ones that got a line in this window. */
  readonly causes: readonly string[];
}

interface IncidentFigures {
  /** Since the incident began. */
  readonly failures?: number;
  readonly lastedMs?: number;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** After the first failure; further windows end every hour. */
const WINDOW_ENDS_MS = [MINUTE_MS, 5 * MINUTE_MS, 30 * MINUTE_MS];
/** In one window. */
const MAX_CAUSES = 10;

/**
 * The incident with what happened now.
 * @param failures 0 if it is told but did not fail.
 */
export function afterFailure(
  before: Incident | undefined,
  cause: string,
  nowMs: number,
  failures: number = 1,
): Incident {
  const { sinceMs = nowMs, windowEndMs = nowMs } = before ?? {};
  const isNewWindow = nowMs >= windowEndMs;
  const causes = isNewWindow ? [] : (before?.causes ?? []);
  const isKnown = causes.includes(cause);
  const isTold = !isKnown && causes.length < MAX_CAUSES;
  const endMs = isNewWindow ? nextWindowEndMs(sinceMs, nowMs) : windowEndMs;
  return {
    sinceMs,
    lastMs: nowMs,
    failures: (before?.failures ?? 0) + failures,
    untold: isTold ? 0 : (before?.untold ?? 0) + failures,
    isTold,
    // A further cause waits for a minute at most.
    windowEndMs: isKnown || isTold ? endMs : Math.min(endMs, nowMs + MINUTE_MS),
    causes: isTold ? [...causes, cause] : causes,
  };
}

function nextWindowEndMs(sinceMs: number, nowMs: number): number {
  const lastedMs = nowMs - sinceMs;
  const nextHourMs = (Math.floor(lastedMs / HOUR_MS) + 1) * HOUR_MS;
  return sinceMs + (WINDOW_ENDS_MS.find((ms) => ms > lastedMs) ?? nextHourMs);
}

/** Nothing for the first failure. */
export function figuresOf({ sinceMs, lastMs, failures }: Incident): IncidentFigures {
  return failures <= 1 ? {} : { failures, lastedMs: Math.round(lastMs - sinceMs) };
}

/** An incident is over once nothing failed for this time. */
const QUIET_MS = MINUTE_MS;
/** All further kinds of one statement share one incident. */
const MAX_KINDS = 256;

interface Failure {
  /** Failures of a kind are one incident. */
  readonly kind: string;
  /** The place in the code that logs it. */
  readonly statement: string;
  /** Before the first line of a kind, the open counts of the other kinds of its subject are told. */
  readonly subject: string | undefined;
  readonly cause: string;
  readonly summarize: (summary: IncidentSummary) => void;
}

interface IncidentSummary {
  readonly figures: IncidentFigures;
  readonly isOver: boolean;
  /** Of `MAX_KINDS` and more kinds. */
  readonly isMixed: boolean;
}

interface OpenIncident {
  incident: Incident;
  readonly subject: string | undefined;
  readonly summarize: (isOver: boolean) => void;
}

export class Incidents {
  readonly #clock: Clock;
  readonly #open = new Map<string, OpenIncident>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @returns what the failure's line has to add; undefined if it gets no line. */
  add({ kind, statement, subject, cause, summarize }: Failure): IncidentFigures | undefined {
    const isMixed = !this.#open.has(kind) && this.#open.size >= MAX_KINDS;
    const key = isMixed ? statement : kind;
    const known = this.#open.get(key);
    const incident = afterFailure(known?.incident, cause, this.#clock.monotonicMs());
    if (known !== undefined) {
      known.incident = incident;
    } else {
      if (subject !== undefined) this.tellCounts(subject);
      const open: OpenIncident = {
        incident,
        subject,
        summarize: (isOver) => summarize({ figures: figuresOf(open.incident), isOver, isMixed }),
      };
      this.#open.set(key, open);
      this.#closeOnceQuiet(key, open, QUIET_MS);
    }
    return incident.isTold ? figuresOf(incident) : undefined;
  }

  /** For the end of the program, or for one subject. */
  tellCounts(subject?: string): void {
    for (const open of this.#open.values()) {
      if (open.incident.untold === 0 || (subject !== undefined && open.subject !== subject)) continue;
      open.incident = { ...open.incident, untold: 0 };
      open.summarize(false);
    }
  }

  #closeOnceQuiet(key: string, open: OpenIncident, afterMs: number): void {
    this.#clock.after(afterMs, () => {
      const leftMs = open.incident.lastMs + QUIET_MS - this.#clock.monotonicMs();
      if (leftMs > 0) {
        this.#closeOnceQuiet(key, open, leftMs);
        return;
      }
      this.#open.delete(key);
      if (open.incident.failures > 1) open.summarize(true);
    });
  }
}
