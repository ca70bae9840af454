import type { Registry } from '../prometheus.ts';

/** Upper bounds of the buckets, in seconds. */
const BUCKETS_SECONDS: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
];

/** The durations of one route's requests: additions to plain numbers, which is all that a request pays. */
export class DurationTally {
  /** Of each bucket alone; the last is for what is longer than all bounds. */
  readonly counts: number[] = Array.from({ length: BUCKETS_SECONDS.length + 1 }, () => 0);
  sumSeconds = 0;

  observe(seconds: number): void {
    let bucket = 0;
    while (seconds > (BUCKETS_SECONDS[bucket] as number)) bucket++;
    this.counts[bucket] = (this.counts[bucket] as number) + 1;
    this.sumSeconds += seconds;
  }
}

/** A series of the exposition: what the registry takes from a metric. */
interface Series {
  readonly metricName: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

/**
 * The histogram `token_sidecar_proxy_request_duration_seconds`, by route. The client library's own finds the bucket of
 * each observation by turning its bound into text, which costs a request more than parsing its head does; this one
 * is text only when it is read.
 */
export class RequestDurations {
  readonly name = 'token_sidecar_proxy_request_duration_seconds';
  readonly help = 'Time from a request head to the end of its answer.';
  readonly type = 'histogram';
  /** For the reference of metrics. */
  readonly labelNames = ['route'];
  readonly #tallies = new Map<string, DurationTally>();

  constructor(registry: Registry) {
    // The registry reads `name` and calls `get`; its types know the library's own classes alone.
    registry.registerMetric(this as unknown as Parameters<Registry['registerMetric']>[0]);
  }

  forRoute(route: string): DurationTally {
    const tally = new DurationTally();
    this.#tallies.set(route, tally);
    return tally;
  }

  /** Called by the registry. */
  async get() {
    const { name, help, type } = this;
    const values = [...this.#tallies].flatMap(([route, tally]) => seriesOf(name, route, tally));
    return { name, help, type, values };
  }
}

/** Buckets are cumulative in the exposition. */
function seriesOf(name: string, route: string, { counts, sumSeconds }: DurationTally): Series[] {
  let total = 0;
  const buckets = counts.map((count, index): Series => {
    total += count;
    const le = BUCKETS_SECONDS[index] ?? '+Inf';
    return { metricName: `${name}_bucket`, labels: { le, route }, value: total };
  });
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels: { route }, value: sumSeconds },
    { metricName: `${name}_count`, labels: { route }, value: total },
  ];
}
