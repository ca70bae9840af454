import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import { messageOf, systemCodeOf } from '../../src/platform/errors.ts';

/** Milliseconds. */
export interface Latencies {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

export interface TallyRow {
  readonly kind: string;
  readonly done: number;
  readonly failed: number;
  readonly latencies: Latencies | undefined;
}

const FAILURES_KEPT = 10;

/** Counts what became of each exchange, by kind. */
export class Tally {
  readonly #rows = new Map<string, { failed: number; readonly durations: RecordableHistogram }>();
  readonly #failures: string[] = [];
  readonly #onFailure: (failed: number) => void;
  #done = 0;
  #failed = 0;

  /** `onFailure` is called with the number of failures so far. */
  constructor(onFailure: (failed: number) => void) {
    this.#onFailure = onFailure;
  }

  get done(): number {
    return this.#done;
  }

  get failed(): number {
    return this.#failed;
  }

  /** The first few failures, described. */
  get failures(): readonly string[] {
    return this.#failures;
  }

  /**
   * Times `exchange`, and counts it as failed if it throws. Never throws itself.
   * @returns what `exchange` gave, or undefined if it failed.
   */
  async measure<T>(kind: string, exchange: () => Promise<T>): Promise<T | undefined> {
    const startedAt = performance.now();
    try {
      const result = await exchange();
      this.succeeded(kind, performance.now() - startedAt);
      return result;
    } catch (error) {
      this.#row(kind).failed += 1;
      this.#failed += 1;
      if (this.#failures.length < FAILURES_KEPT) {
        const code = systemCodeOf(error);
        this.#failures.push(
          `${new Date().toISOString()} ${kind}: ${messageOf(error)}${code === undefined ? '' : ` (${code})`}`,
        );
      }
      this.#onFailure(this.#failed);
      return undefined;
    }
  }

  succeeded(kind: string, durationMs: number): void {
    this.#row(kind).durations.record(Math.max(1, Math.round(durationMs * 1000)));
    this.#done += 1;
  }

  /** The most frequent first. */
  rows(): TallyRow[] {
    const rows = [...this.#rows].map(([kind, { failed, durations }]) => ({
      kind,
      done: durations.count,
      failed,
      latencies:
        durations.count === 0
          ? undefined
          : {
              p50: durations.percentile(50) / 1000,
              p99: durations.percentile(99) / 1000,
              max: durations.max / 1000,
            },
    }));
    return rows.sort((a, b) => b.done - a.done);
  }

  #row(kind: string) {
    const row = this.#rows.get(kind) ?? { failed: 0, durations: createHistogram() };
    this.#rows.set(kind, row);
    return row;
  }
}
