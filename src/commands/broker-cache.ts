/** The cache that the broker's replicas share. Loaded only if one is configured: it contains the store's client. */

import { createCacheMetrics } from '../broker/cache/metrics.ts';
import { followAccess } from '../broker/cache/mounted-access.ts';
import { openRedisStore } from '../broker/cache/redis-store.ts';
import { createTokenCache, type TokenCache } from '../broker/cache/token-cache.ts';
import type { Clock } from '../clock.ts';
import type { Logger } from '../log/logger.ts';
import type { Registry } from '../prometheus.ts';
import type { BrokerCacheConfig } from './broker-cache-settings.ts';

/** How often files are read even without a notification. */
const POLL_MS = 30_000;

interface BrokerCacheOptions {
  readonly registry: Registry;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
}

/**
 * Resolves once a connection to the store has been tried, so that the first request finds it connected.
 * @throws {ConfigurationError} if the files mounted for it cannot be used.
 */
export async function openBrokerCache(
  config: BrokerCacheConfig,
  { registry, clock, random, log }: BrokerCacheOptions,
): Promise<TokenCache & { close(): Promise<void> }> {
  const mounted = await followAccess(config, { clock, pollMs: POLL_MS, log });
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
