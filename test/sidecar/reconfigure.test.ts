import { expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { createLogger } from '../../src/platform/log/logger.ts';
import { Registry } from '../../src/platform/prometheus.ts';
import { systemClock } from '../../src/platform/time/clock.ts';
import type { InUse } from '../../src/sidecar/configuration.ts';
import { type ReconfigurableOptions, reconfigurable } from '../../src/sidecar/reconfigure.ts';

const configOf = (route: string) =>
  loadConfig(
    { config: { key: '--config', text: '/token-sidecar.json' } },
    [],
    JSON.stringify({
      credentials: [{ name: 'default', tokenUrl: 'https://sso.test/token' }],
      routes: [{ name: route, upstream: 'https://api.test' }],
    }),
  );

it('series that could not be forgotten are logged, and the next configurations take effect', async () => {
  let inUse: InUse = { config: await configOf('first'), credentials: [] };
  const lines: string[] = [];
  const asked: string[] = [];
  const target = reconfigurable({
    inUse: () => inUse,
    use: (next: InUse) => {
      inUse = next;
    },
    sources: { open: async () => [], close: async () => {} },
    proxy: { reconfigure: async () => ({ whenUnused: async () => {} }) },
    tokenMetrics: { forget: () => {} },
    proxyMetrics: {
      forget(route: string) {
        asked.push(route);
        if (route === 'first') throw new Error('a fault of the metrics');
        return true;
      },
    },
    registry: new Registry(),
    clock: systemClock,
    log: createLogger('info', { write: (line) => void lines.push(line) }),
  } as unknown as ReconfigurableOptions);
  const options = { abandoned: new AbortController().signal, onWait: () => {} };

  expect(await target.reconfigure(await configOf('second'), options)).toBe(true);
  await expect.poll(() => lines.join('')).toContain('a fault of the metrics');
  expect(await target.reconfigure(await configOf('third'), options)).toBe(true);
  await expect.poll(() => asked).toContain('second');
  expect(target.config().routes.map(({ name }) => name)).toEqual(['third']);
});
