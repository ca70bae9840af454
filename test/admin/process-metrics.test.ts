import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { registerProcessMetrics } from '../../src/admin/process-metrics.ts';
import { Registry } from '../../src/platform/prometheus.ts';

async function gaugeOf(registry: Registry, name: string): Promise<number> {
  const line = (await registry.metrics()).split('\n').find((candidate) => candidate.startsWith(`${name} `));
  return Number(line?.split(' ').at(-1));
}

// In another process than this one, in which the runner opens and closes files at any time.
it.runIf(process.platform === 'linux')('open descriptors are counted, and how many there may be', () => {
  const program = join(import.meta.dirname, 'lone-descriptors.ts');
  const { stdout } = spawnSync(process.execPath, [program], { encoding: 'utf8' });
  const { before, after, most } = JSON.parse(stdout);
  expect(before).toBeGreaterThan(0);
  expect(after).toBe(before + 3);
  expect(most).toBeGreaterThan(before);
});

it('a delay of the event loop is shown to every reader for a minute', async () => {
  const registry = new Registry();
  let atMs = 0;
  registerProcessMetrics(registry, undefined, () => atMs);
  await new Promise((resolve) => setImmediate(resolve));
  // Longer than a busy machine holds anything up by itself.
  const untilMs = performance.now() + 500;
  while (performance.now() < untilMs);
  await new Promise((resolve) => setImmediate(resolve));
  const longest = () => gaugeOf(registry, 'nodejs_eventloop_lag_max_seconds');

  const seen: number[] = [];
  for (atMs = 0; atMs < 75_000; atMs += 5000) seen.push(await longest());
  // Older versions of Node look by a timer, once a second: they may have missed it.
  const sampled = process.versions.node.split('.')[0] !== '24';
  if (sampled) expect(Math.min(...seen)).toBeGreaterThan(0.45);
  // A busy machine may hold it up once more meanwhile.
  await expect
    .poll(async () => {
      atMs += 60_000;
      return await longest();
    })
    .toBeLessThan(0.45);
});
