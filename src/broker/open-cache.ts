/** Loaded only if configured, since it contains the store's client. */

import type { Logger } from '../platform/log/logger.ts';
import type { Registry } from '../platform/prometheus.ts';
import type { Clock } from '../platform/time/clock.ts';
import { createCacheMetrics } from './cache/metrics.ts';
import { watchAccess } from './cache/mounted-access.ts';
import { openRedisStore } from './cache/redis-store.ts';
import { createTokenCache } from './cache/token-cache.ts';
import type { BrokerConfig } from './settings.ts';

/** How often files are read without a notification. */
const POLL_MS = 30_000;

interface BrokerCacheOptions {
  readonly registry: Registry;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
}

/**
 * Resolves once a connection has been tried.
 * @throws {ConfigurationError} if its mounted files cannot be used.
 */
export async function openBrokerCache(
  config: NonNullable<BrokerConfig['cache']>,
  { registry, clock, random, log }: BrokerCacheOptions,
) {
  const mounted = await watchAccess(config, { clock, pollMs: POLL_MS, log });
  const metrics = createCacheMetrics(registry);
  const { address, timeoutMs } = config;
  const store = openRedisStore({ address, access: mounted.access, timeoutMs, clock, random, metrics, log });
  mounted.onAccess(() => store.reconnect());
  await store.tried;
  return {
    ...createTokenCache({ store, keys: mounted.keys, clock, random, metrics }),
    async close() {
      mounted.close();
      await store.close();
    },
  };
}
