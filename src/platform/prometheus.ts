/**
 * The parts of the Prometheus client that we use. Its entry point also loads cluster, push gateway and default
 * metrics, at 6 MB of memory in every pod; the parts below cost 1 MB.
 */

import Counter from '@prometheus-io/client/lib/counter.js';
import Gauge from '@prometheus-io/client/lib/gauge.js';
import Histogram from '@prometheus-io/client/lib/histogram.js';
import Registry from '@prometheus-io/client/lib/registry.js';
import { nextTurn, pauseEvery } from './time/async.ts';

export { Counter, Gauge, Histogram, Registry };

export type Labels = Readonly<Record<string, string>>;

/** What the library's counters, gauges and histograms have in common. */
interface Labelled {
  get(): Promise<{ readonly values: readonly { readonly labels: Labels }[] }>;
  remove(labels: Labels): void;
  /** The labels of each series; our own metrics give them without their values. */
  labelSets?(): Iterable<Labels>;
}

/** How many series are looked at in one turn of the event loop. */
const SERIES_AT_ONCE = 500;

/**
 * Removes from every metric the series of what no longer exists, in one pass and bit by bit, so that requests are
 * served meanwhile. Metrics that count elsewhere and are read when scraped have to be told separately.
 */
export async function forgetSeries(registry: Registry, isGone: (labels: Labels) => boolean): Promise<void> {
  const pause = pauseEvery(SERIES_AT_ONCE);
  for (const metric of registry.getMetricsAsArray() as unknown as Partial<Labelled>[]) {
    if (metric.remove === undefined || metric.get === undefined) continue;
    await nextTurn();
    for (const labels of metric.labelSets?.() ?? (await metric.get()).values.map((series) => series.labels)) {
      const turn = pause();
      if (turn !== undefined) await turn;
      // The buckets of a histogram go with its sum.
      if (!('le' in labels) && isGone(labels)) metric.remove(labels);
    }
  }
}
