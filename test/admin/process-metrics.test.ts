import { open } from 'node:fs/promises';
import { expect, it, onTestFinished } from 'vitest';
import { registerProcessMetrics } from '../../src/admin/process-metrics.ts';
import { Registry } from '../../src/prometheus.ts';

async function gaugeOf(registry: Registry, name: string): Promise<number> {
  const line = (await registry.metrics()).split('\n').find((candidate) => candidate.startsWith(`${name} `));
  return Number(line?.split(' ').at(-1));
}

it.runIf(process.platform === 'linux')(
  'open descriptors are counted, and how many there may be',
  async () => {
    const registry = new Registry();
    registerProcessMetrics(registry);
    const before = await gaugeOf(registry, 'process_open_fds');
    const files = await Promise.all([1, 2, 3].map(() => open('/dev/null')));
    onTestFinished(() => Promise.all(files.map((file) => file.close())).then(() => undefined));

    expect(before).toBeGreaterThan(0);
    expect(await gaugeOf(registry, 'process_open_fds')).toBe(before + 3);
    expect(await gaugeOf(registry, 'process_max_fds')).toBeGreaterThan(before);
  },
);

it('a loop that was held up shows it, until the next reading', async () => {
  const registry = new Registry();
  registerProcessMetrics(registry);
  await new Promise((resolve) => setImmediate(resolve));
  const untilMs = performance.now() + 60;
  while (performance.now() < untilMs);
  await new Promise((resolve) => setImmediate(resolve));

  const sampled = process.versions.node.split('.')[0] !== '24';
  const longest = await gaugeOf(registry, 'nodejs_eventloop_lag_max_seconds');
  // Older versions of Node look by a timer, once a second.
  if (sampled) expect(longest).toBeGreaterThan(0.05);
  expect(await gaugeOf(registry, 'nodejs_eventloop_lag_max_seconds')).toBeLessThan(0.05);
});
