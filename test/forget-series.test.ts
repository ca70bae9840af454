import { expect, it } from 'vitest';
import { Gauge, Registry, removeSeries } from '../src/platform/prometheus.ts';
import { testProxyMetrics } from './support/proxy-metrics.ts';
import { turnsDuring } from './support/turns.ts';

/** Routes `gone-N` and `kept-N`, each with requests of three kinds. */
function metricsOf(routes: number) {
  const registry = new Registry();
  const metrics = testProxyMetrics(registry);
  for (let index = 0; index < 2 * routes; index++) {
    const observer = metrics.forRoute(`${index % 2 === 0 ? 'gone' : 'kept'}-${index}`);
    for (const status of [200, 404, 503]) {
      observer.started();
      observer.ended({ method: 'GET', protocol: 'http1' }, status, 3, 'http1');
      observer.upstreamAnswered(3);
    }
  }
  return { registry, metrics };
}

const isGone = ({ route }: Readonly<Record<string, string>>) => route?.startsWith('gone-') === true;

it('takes all series of many routes out, and leaves the others as they are', async () => {
  const { registry, metrics } = metricsOf(20);
  const before = (await registry.metrics()).split('\n');
  for (const route of metrics.stats().keys()) if (isGone({ route })) metrics.forget(route);
  await removeSeries(registry, isGone);
  const after = (await registry.metrics()).split('\n');
  expect(after).toEqual(before.filter((line) => !line.includes('route="gone-')));
  expect(after.some((line) => line.includes('_bucket{le="+Inf",route="kept-1",code="5xx"} 1'))).toBe(true);
});

it('reads each metric once, and lets the loop turn meanwhile', async () => {
  const { registry } = metricsOf(500);
  let reads = 0;
  new Gauge({ name: 'read', help: 'Counts.', registers: [registry], collect: () => void reads++ });
  const turns = await turnsDuring(() => removeSeries(registry, isGone));
  expect(reads).toBe(1);
  // A thousand routes with three series each in several metrics, five hundred series a turn.
  expect(turns).toBeGreaterThan(15);
});
