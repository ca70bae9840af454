/** The client's entry point would load 6 MB, these parts 1 MB. */

import Counter from '@prometheus-io/client/lib/counter.js';
import Gauge from '@prometheus-io/client/lib/gauge.js';
import Histogram from '@prometheus-io/client/lib/histogram.js';
import Registry from '@prometheus-io/client/lib/registry.js';
import { nextTurn, yieldEvery } from './time/async.ts';

export { Counter, Gauge, Histogram, Registry };

export type Labels = Readonly<Record<string, string>>;

interface Labelled {
  get(): Promise<{ readonly values: readonly { readonly labels: Labels }[] }>;
  remove(labels: Labels): void;
  /** Without values; only our own metrics have it. */
  labelSets?(): Iterable<Labels>;
}

/** In one turn of the event loop. */
const SERIES_AT_ONCE = 500;

/**
 * Works in parts, so that requests are served meanwhile. Metrics that are read when scraped have to be told separately.
 */
export async function removeSeries(registry: Registry, isGone: (labels: Labels) => boolean): Promise<void> {
  const pause = yieldEvery(SERIES_AT_ONCE);
  for (const metric of registry.getMetricsAsArray() as unknown as Partial<Labelled>[]) {
    if (metric.remove === undefined || metric.get === undefined) continue;
    await nextTurn();
    for (const labels of metric.labelSets?.() ?? (await metric.get()).values.map((series) => series.labels)) {
      const turn = pause();
      if (turn !== undefined) await turn;
      if (!('le' in labels) && isGone(labels)) metric.remove(labels);
    }
  }
}
