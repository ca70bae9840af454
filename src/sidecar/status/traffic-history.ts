/** Sampled from counters: requests cost nothing. */

import { ERRORS } from '../../platform/errors.ts';
import type { Clock } from '../../platform/time/clock.ts';
import type { RouteStats } from '../../proxy/metrics.ts';
import type { RecentTraffic } from './report.ts';

interface TrafficSources {
  stats(): ReadonlyMap<string, RouteStats>;
  /** Upper bounds, in seconds. */
  readonly bounds: readonly number[];
  readonly clock: Clock;
}

export interface LastMinute extends RouteMinute {
  /** Wall time in ms; undefined without a fault. */
  readonly failingSinceMs: number | undefined;
}

const INTERVAL_MS = 10_000;
const INTERVALS = 60;
const MINUTE = 6;
/** The first that are used; one idle for the whole time makes room. */
const MAX_ROUTES = 64;

const CLASSES = 6;
/** Offsets of the counts in each interval; the classes follow. */
const ERRORS_AT = 0;
const REFUSED_AT = 1;
const COUNTS = 2;

/** 6 KB, and 240 bytes for each error code that has occurred. */
class RouteHistory {
  readonly #width: number;
  readonly #stats: Uint32Array;
  readonly #errors = new Map<string, Uint32Array>();
  /** Since the beginning of its first interval. */
  fault: { readonly kind: RouteFault['kind']; readonly sinceMs: number } | undefined;
  /** Intervals since the last request. */
  idle = 0;

  constructor(buckets: number) {
    this.#width = COUNTS + CLASSES + buckets;
    this.#stats = new Uint32Array(INTERVALS * this.#width);
  }

  add(slot: number, gained: RouteStats): void {
    const start = slot * this.#width;
    this.#stats[start + ERRORS_AT] = gained.errors;
    this.#stats[start + REFUSED_AT] = gained.refusedTokens;
    this.#stats.set(gained.classes, start + COUNTS);
    this.#stats.set(gained.durations, start + COUNTS + CLASSES);
    for (const series of this.#errors.values()) series[slot] = 0;
    for (const [code, count] of gained.errorsByCode) {
      if (count === 0) continue;
      const series = this.#errors.get(code) ?? new Uint32Array(INTERVALS);
      series[slot] = count;
      this.#errors.set(code, series);
    }
    this.idle = gained.total === 0 ? this.idle + 1 : 0;
  }

  judge(minute: RouteMinute, nowMs: number): void {
    const kind = routeFault(minute)?.kind;
    if (kind === this.fault?.kind) return;
    this.fault = kind && { kind, sinceMs: nowMs - INTERVAL_MS };
  }

  minute(slots: readonly number[]): RouteMinute {
    return {
      requests: sum(slots.map((slot) => sum(this.classes(slot)))),
      errorsByCode: this.errorsByCode(slots),
      serverErrors: sum(slots.map((slot) => this.classes(slot)[5] as number)),
      refusedTokens: sum(slots.map((slot) => this.refused(slot))),
    };
  }

  errors(slot: number): number {
    return this.#stats[slot * this.#width + ERRORS_AT] as number;
  }

  refused(slot: number): number {
    return this.#stats[slot * this.#width + REFUSED_AT] as number;
  }

  classes(slot: number): Uint32Array {
    const start = slot * this.#width + COUNTS;
    return this.#stats.subarray(start, start + CLASSES);
  }

  durations(slot: number): Uint32Array {
    const start = slot * this.#width + COUNTS + CLASSES;
    return this.#stats.subarray(start, start + this.#width - COUNTS - CLASSES);
  }

  errorsByCode(slots: readonly number[]): Map<string, number> {
    const found = new Map<string, number>();
    for (const [code, series] of this.#errors) {
      const count = sum(slots.map((slot) => series[slot] as number));
      if (count > 0) found.set(code, count);
    }
    return found;
  }
}

export class TrafficHistory {
  readonly #sources: TrafficSources;
  readonly #routes = new Map<string, RouteHistory>();
  #before: ReadonlyMap<string, RouteStats> = new Map();
  /** The slot written next: the oldest. */
  #next = 0;
  #taken = 0;
  #cancel: () => void;

  constructor(sources: TrafficSources) {
    this.#sources = sources;
    this.#cancel = sources.clock.after(INTERVAL_MS, () => this.#sample());
  }

  /** Undefined for a route that was idle for the whole time, or exceeds the bound. */
  recent(route: string): RecentTraffic | undefined {
    const history = this.#routes.get(route);
    if (history === undefined) return undefined;
    const { bounds } = this.#sources;
    const slots = this.#slots(INTERVALS);
    const durations = slots.map((slot) => history.durations(slot));
    const classes = total(slots.map((slot) => history.classes(slot)));
    const whole = total(durations);
    return {
      intervalSeconds: INTERVAL_MS / 1000,
      requests: slots.map((slot) => sum(history.classes(slot))),
      errors: slots.map((slot) => history.errors(slot)),
      p50Ms: durations.map((counts) => quantileMs(counts, bounds, 0.5)),
      p99Ms: durations.map((counts) => quantileMs(counts, bounds, 0.99)),
      statusClasses: Object.fromEntries(
        [...classes.entries()]
          .filter(([, count]) => count > 0)
          .map(([first, count]) => [`${first}xx`, count]),
      ),
      errorsByCode: Object.fromEntries(history.errorsByCode(slots)),
      p50: quantileMs(whole, bounds, 0.5),
      p99: quantileMs(whole, bounds, 0.99),
      refusedTokens: sum(slots.map((slot) => history.refused(slot))),
    };
  }

  lastMinute(route: string): LastMinute | undefined {
    const history = this.#routes.get(route);
    if (history === undefined) return undefined;
    return { ...history.minute(this.#slots(MINUTE)), failingSinceMs: history.fault?.sinceMs };
  }

  get size(): number {
    return this.#routes.size;
  }

  close(): void {
    this.#cancel();
  }

  #sample(): void {
    const { stats, clock } = this.#sources;
    this.#cancel = clock.after(INTERVAL_MS, () => this.#sample());
    const now = stats();
    const nowMs = clock.now().wallMs;
    const slot = this.#next;
    for (const [route, counted] of now) {
      const gained = difference(counted, this.#before.get(route));
      const history = this.#routes.get(route) ?? this.#begin(route, gained);
      history?.add(slot, gained);
      if (history !== undefined && history.idle >= INTERVALS) this.#routes.delete(route);
    }
    // Removed by a reload.
    for (const route of this.#routes.keys()) if (!now.has(route)) this.#routes.delete(route);
    this.#before = now;
    this.#next = (slot + 1) % INTERVALS;
    this.#taken = Math.min(INTERVALS, this.#taken + 1);
    const minute = this.#slots(MINUTE);
    for (const history of this.#routes.values()) history.judge(history.minute(minute), nowMs);
  }

  #begin(route: string, gained: RouteStats): RouteHistory | undefined {
    if (gained.total === 0 || this.#routes.size >= MAX_ROUTES) return undefined;
    const history = new RouteHistory(this.#sources.bounds.length + 1);
    this.#routes.set(route, history);
    return history;
  }

  /** Oldest first. */
  #slots(count: number): number[] {
    const length = Math.min(count, this.#taken);
    return Array.from({ length }, (_, index) => (this.#next - length + index + INTERVALS) % INTERVALS);
  }
}

function difference(now: RouteStats, before: RouteStats | undefined): RouteStats {
  if (before === undefined) return now;
  const minus = (counts: readonly number[], earlier: readonly number[]) =>
    counts.map((count, index) => count - (earlier[index] ?? 0));
  return {
    ...now,
    total: now.total - before.total,
    errors: now.errors - before.errors,
    refusedTokens: now.refusedTokens - before.refusedTokens,
    classes: minus(now.classes, before.classes),
    durations: minus(now.durations, before.durations),
    errorsByCode: new Map(
      [...now.errorsByCode].map(([code, count]) => [code, count - (before.errorsByCode.get(code) ?? 0)]),
    ),
  };
}

/** Spread evenly within a bucket, as in Prometheus' `histogram_quantile`; the highest bound for anything longer. */
function quantileMs(counts: ArrayLike<number>, bounds: readonly number[], part: number): number | null {
  const all = sum(counts);
  if (all === 0) return null;
  let left = all * part;
  for (const [bucket, bound] of bounds.entries()) {
    const count = counts[bucket] as number;
    if (left <= count && count > 0) {
      const lower = bounds[bucket - 1] ?? 0;
      return (lower + (bound - lower) * (left / count)) * 1000;
    }
    left -= count;
  }
  return (bounds.at(-1) as number) * 1000;
}

function total(rows: readonly Uint32Array[]): number[] {
  const sums: number[] = [];
  for (const row of rows)
    for (const [index, count] of row.entries()) sums[index] = (sums[index] ?? 0) + count;
  return sums;
}

function sum(counts: ArrayLike<number>): number {
  let all = 0;
  for (let index = 0; index < counts.length; index++) all += counts[index] as number;
  return all;
}

interface RouteMinute {
  readonly requests: number;
  readonly errorsByCode: ReadonlyMap<string, number>;
  /** Whoever gave them. */
  readonly serverErrors: number;
  /** 401 answers to an injected token. */
  readonly refusedTokens: number;
}

type RouteFault =
  | {
      readonly kind: 'fails';
      readonly failed: number;
      readonly codes: readonly (readonly [string, number])[];
    }
  | { readonly kind: 'refuses_tokens' }
  | { readonly kind: 'answers_errors'; readonly answered: number };

/** Of a minute's requests. */
const FAILING = 0.1;

/** Reported for the credential. */
const OF_CREDENTIALS: ReadonlySet<string> = new Set(['token_unavailable']);

/** Undefined if there is none, or no request. */
export function routeFault({
  requests,
  errorsByCode,
  serverErrors,
  refusedTokens,
}: RouteMinute): RouteFault | undefined {
  if (requests === 0) return undefined;
  const codes = [...errorsByCode].filter(([code]) => isUpstreams(code)).sort((a, b) => b[1] - a[1]);
  const failed = codes.reduce((sum, [, count]) => sum + count, 0);
  if (failed / requests >= FAILING) return { kind: 'fails', failed, codes };
  if (refusedTokens / requests >= FAILING) return { kind: 'refuses_tokens' };
  const own = [...errorsByCode].reduce((sum, [code, count]) => sum + (statusOf(code) >= 500 ? count : 0), 0);
  const answered = serverErrors - own;
  return answered / requests >= FAILING ? { kind: 'answers_errors', answered } : undefined;
}

/** Neither the app's mistake nor due to a missing token. */
function isUpstreams(code: string): boolean {
  return !OF_CREDENTIALS.has(code) && (statusOf(code) >= 500 || statusOf(code) === 0);
}

/** 0 if the connection ended without an answer. */
function statusOf(code: string): number {
  const row = (ERRORS as Readonly<Record<string, object>>)[code];
  return row !== undefined && 'status' in row ? Number(row.status) : 0;
}
