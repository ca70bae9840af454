import type { Registry } from '../platform/prometheus.ts';
import { BUCKETS_SECONDS, DurationHistogram, type DurationTally } from './duration-histogram.ts';

/** By the first digit of a status; there is no class 0. */
const CLASSES = ['', '1xx', '2xx', '3xx', '4xx', '5xx'] as const;

/** The durations of one route's requests, by the class of their status. A class has series from its first request on. */
export class RouteDurations {
  readonly #byClass: (DurationTally | undefined)[] = CLASSES.map(() => undefined);
  readonly #open: (code: string) => DurationTally;

  constructor(open: (code: string) => DurationTally) {
    this.#open = open;
  }

  observe(status: number, seconds: number, traceId?: string): void {
    const index = Math.min(5, Math.max(1, (status / 100) | 0));
    let tally = this.#byClass[index];
    if (tally === undefined) {
      tally = this.#open(CLASSES[index] as string);
      this.#byClass[index] = tally;
    }
    tally.observe(seconds, traceId);
  }

  /** Ended requests by the first digit of their status. */
  classes(): number[] {
    return this.#byClass.map((tally) => (tally?.counts ?? []).reduce((sum, count) => sum + count, 0));
  }

  /** Ended requests by duration: one bucket up to each of `BUCKETS_SECONDS`, and one for anything longer. */
  buckets(): number[] {
    const sums = Array.from({ length: BUCKETS_SECONDS.length + 1 }, () => 0);
    for (const tally of this.#byClass) {
      for (const [bucket, count] of tally?.counts.entries() ?? []) sums[bucket] = (sums[bucket] ?? 0) + count;
    }
    return sums;
  }
}

interface RequestDurations {
  forRoute(route: string): RouteDurations;
  /** As `DurationHistogram` has them. */
  exemplars(): ReadonlyMap<string, string>;
}

/** Registers `token_sidecar_proxy_request_duration_seconds`. */
export function createRequestDurations(registry: Registry): RequestDurations {
  const histogram = new DurationHistogram(registry, {
    name: 'token_sidecar_proxy_request_duration_seconds',
    help: 'Time from a request head to the end of its answer, by the class of its status.',
    labelNames: ['route', 'code'],
  });
  return {
    forRoute: (route) => new RouteDurations((code) => histogram.series({ route, code })),
    exemplars: () => histogram.exemplars(),
  };
}
