import { Counter, Gauge, type Registry } from '../../platform/prometheus.ts';
import { FAILURE_REASONS, type StoreFailure } from './token-store.ts';

/**
 * - `waited`: another replica was requesting it.
 * - `old`: the one found is about to be renewed or replaced.
 * - `invalid`: altered, or another program's.
 * - `away`: the store did not answer.
 */
type LookupResult = 'hit' | 'waited' | 'miss' | 'old' | 'invalid' | 'away';

const LOOK_RESULTS: readonly LookupResult[] = ['hit', 'waited', 'miss', 'old', 'invalid', 'away'];

export interface CacheMetrics {
  looked(result: LookupResult): void;
  stored(result: 'stored' | 'away'): void;
  storeFailed(reason: StoreFailure['reason']): void;
  observeStore(isConnected: () => boolean): void;
}

export function createCacheMetrics(registry: Registry): CacheMetrics {
  const registers = [registry];
  const looks = new Counter({
    name: 'token_sidecar_broker_cache_requests_total',
    help: 'Looks into the token cache before a grant, by how they ended; with hit and waited there is no grant.',
    labelNames: ['result'],
    registers,
  });
  const stores = new Counter({
    name: 'token_sidecar_broker_cache_stores_total',
    help: 'Tokens that were to be written into the token cache, by whether they were.',
    labelNames: ['result'],
    registers,
  });
  const failures = new Counter({
    name: 'token_sidecar_broker_cache_failures_total',
    help: 'Connections to the token cache that failed or ended, by reason.',
    labelNames: ['reason'],
    registers,
  });
  let connected = (): boolean => false;
  new Gauge({
    name: 'token_sidecar_broker_cache_connected',
    help: '1 while the token cache can be asked, 0 while each replica asks by itself.',
    registers,
    collect() {
      this.set(connected() ? 1 : 0);
    },
  });
  for (const result of LOOK_RESULTS) looks.inc({ result }, 0);
  for (const result of ['stored', 'away']) stores.inc({ result }, 0);
  for (const reason of FAILURE_REASONS) failures.inc({ reason }, 0);
  return {
    looked: (result) => looks.inc({ result }),
    stored: (result) => stores.inc({ result }),
    storeFailed: (reason) => failures.inc({ reason }),
    observeStore(isConnected) {
      connected = isConnected;
    },
  };
}
