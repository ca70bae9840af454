/** Durations of requests, as histograms with the traces that explain them. */

import type { Labels, Registry } from '../platform/prometheus.ts';

/** Upper bounds of the buckets, in seconds; longer durations have a bucket of their own. */
export const BUCKETS_SECONDS: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
];

/** The durations of one series: a request pays only for additions to plain numbers. */
export class DurationTally {
  /** Per bucket, not cumulative; the last is for durations above all bounds. */
  readonly counts: number[] = Array.from({ length: BUCKETS_SECONDS.length + 1 }, () => 0);
  sumSeconds = 0;
  /** Per bucket, the last request whose trace is kept; created with the first. */
  exemplars: (Exemplar | undefined)[] | undefined;

  /** @param traceId of the trace that shows where the time went, if one is kept. */
  observe(seconds: number, traceId?: string): void {
    let bucket = 0;
    while (seconds > (BUCKETS_SECONDS[bucket] as number)) bucket++;
    this.counts[bucket] = (this.counts[bucket] as number) + 1;
    this.sumSeconds += seconds;
    if (traceId !== undefined) this.#keep(bucket, { traceId, seconds });
  }

  #keep(bucket: number, exemplar: Exemplar): void {
    this.exemplars ??= this.counts.map(() => undefined);
    this.exemplars[bucket] = exemplar;
  }
}

/** One observation, with the trace that explains it. */
interface Exemplar {
  readonly traceId: string;
  readonly seconds: number;
}

/** A series of the exposition: what the registry takes from a metric. */
interface Series {
  readonly metricName: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

/**
 * A histogram of durations. The client library's own turns a bucket's bound into text for each observation, which costs
 * a request more than parsing its head; this one makes text only when it is read.
 */
export class DurationHistogram {
  readonly name: string;
  readonly help: string;
  readonly type = 'histogram';
  /** For the metrics reference. */
  readonly labelNames: readonly string[];
  /** By the values of its labels. */
  readonly #tallies = new Map<string, { readonly labels: Labels; readonly tally: DurationTally }>();

  constructor(
    registry: Registry,
    { name, help, labelNames }: { name: string; help: string; labelNames: readonly string[] },
  ) {
    this.name = name;
    this.help = help;
    this.labelNames = labelNames;
    // The registry reads `name` and calls `get`; its types accept only the library's own classes.
    registry.registerMetric(this as unknown as Parameters<Registry['registerMetric']>[0]);
  }

  /** Adds a series; call once per set of labels. */
  series(labels: Labels): DurationTally {
    const tally = new DurationTally();
    this.#tallies.set(this.#keyOf(labels), { labels, tally });
    return tally;
  }

  /** Like `remove` of the library's metrics. */
  remove(labels: Labels): void {
    this.#tallies.delete(this.#keyOf(labels));
  }

  /** The labels of all series at the time of the call. */
  labelSets(): Labels[] {
    return [...this.#tallies.values()].map(({ labels }) => labels);
  }

  /** The exemplars that OpenMetrics puts after bucket samples (§ Exemplars), by the sample's name and labels. */
  exemplars(): Map<string, string> {
    const found = new Map<string, string>();
    for (const { labels, tally } of this.#tallies.values()) {
      tally.exemplars?.forEach((exemplar, bucket) => {
        if (exemplar === undefined) return;
        const all = Object.entries({ le: BUCKETS_SECONDS[bucket] ?? '+Inf', ...labels });
        const sample = `${this.name}_bucket{${all.map(([name, value]) => `${name}="${value}"`).join(',')}}`;
        found.set(sample, ` # {trace_id="${exemplar.traceId}"} ${exemplar.seconds}`);
      });
    }
    return found;
  }

  /** Called by the registry. */
  async get() {
    const { name, help, type } = this;
    const values = [...this.#tallies.values()].flatMap(({ labels, tally }) => seriesOf(name, labels, tally));
    return { name, help, type, values };
  }

  #keyOf(labels: Labels): string {
    return JSON.stringify(this.labelNames.map((name) => labels[name]));
  }
}

/** Buckets are cumulative in the exposition. */
function seriesOf(name: string, labels: Labels, { counts, sumSeconds }: DurationTally): Series[] {
  let total = 0;
  const buckets = counts.map((count, index): Series => {
    total += count;
    const le = BUCKETS_SECONDS[index] ?? '+Inf';
    return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: total };
  });
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sumSeconds },
    { metricName: `${name}_count`, labels, value: total },
  ];
}

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
