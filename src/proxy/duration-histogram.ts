import type { Labels, Registry } from '../platform/prometheus.ts';

export const BUCKETS_SECONDS: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
];

export class DurationTally {
  /** Per bucket, not cumulative; the last is for longer durations. */
  readonly counts: number[] = Array.from({ length: BUCKETS_SECONDS.length + 1 }, () => 0);
  sumSeconds = 0;
  /** Per bucket, the latest kept trace. */
  exemplars: (Exemplar | undefined)[] | undefined;

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

interface Exemplar {
  readonly traceId: string;
  readonly seconds: number;
}

/** The registry's format. */
interface Series {
  readonly metricName: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

/**
 * The client library's histogram makes a bucket's bound into text for each observation, which costs more than parsing a
 * head; this one makes text only when read.
 */
export class DurationHistogram {
  readonly name: string;
  readonly help: string;
  readonly type = 'histogram';
  /** For the metrics reference. */
  readonly labelNames: readonly string[];
  /** By label values. */
  readonly #tallies = new Map<string, { readonly labels: Labels; readonly tally: DurationTally }>();

  constructor(
    registry: Registry,
    { name, help, labelNames }: { name: string; help: string; labelNames: readonly string[] },
  ) {
    this.name = name;
    this.help = help;
    this.labelNames = labelNames;
    // The registry's types accept only the library's own classes.
    registry.registerMetric(this as unknown as Parameters<Registry['registerMetric']>[0]);
  }

  /** Call once per set of labels. */
  series(labels: Labels): DurationTally {
    const tally = new DurationTally();
    this.#tallies.set(this.#keyOf(labels), { labels, tally });
    return tally;
  }

  remove(labels: Labels): void {
    this.#tallies.delete(this.#keyOf(labels));
  }

  /** At the time of the call. */
  labelSets(): Labels[] {
    return [...this.#tallies.values()].map(({ labels }) => labels);
  }

  /** For OpenMetrics (§ Exemplars), by the sample's name and labels. */
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

const CLASSES = ['', '1xx', '2xx', '3xx', '4xx', '5xx'] as const;

/** A class has series from its first request on. */
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

  classes(): number[] {
    return this.#byClass.map((tally) => (tally?.counts ?? []).reduce((sum, count) => sum + count, 0));
  }

  /** Ended requests: one bucket for each of `BUCKETS_SECONDS`, and one for longer ones. */
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
