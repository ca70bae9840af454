/** The list of metrics that dashboards and rules are made from, and what a gateway exports. */

import { expect, it } from 'vitest';
import { METRIC_PREFIX, METRICS, type Metric } from '../../scripts/monitoring/metrics.ts';
import { startGateway } from './running-gateway.ts';

const LISTED: readonly (readonly [string, Metric])[] = Object.entries(METRICS);

it('the list of metrics has each metric of the gateway with its type, and no other', async () => {
  const gateway = await startGateway();
  const { port } = gateway.sidecar.adminAddress;
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const exported = [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name = '', type]) => [name, type]);
  const own = exported.filter(([name]) => name?.startsWith(`${METRIC_PREFIX}gateway_`));
  const listed = LISTED.filter(([, { program }]) => program === 'gateway');
  expect(own.sort()).toEqual(listed.map(([name, { type }]) => [METRIC_PREFIX + name, type]).sort());
  const names = new Set(LISTED.map(([name]) => METRIC_PREFIX + name));
  const all = exported.map(([name = '']) => name).filter((name) => name.startsWith(METRIC_PREFIX));
  expect(all.filter((name) => !names.has(name))).toEqual([]);
  for (const [name, { labels }] of listed) {
    const series = new RegExp(`^${METRIC_PREFIX}${name}(?:\\{(.*)\\})? `, 'm').exec(text);
    const found = [...(series?.[1] ?? '').matchAll(/(\w+)="/g)].map(([, label]) => label);
    expect(found.sort(), name).toEqual([...labels].sort());
  }
});
