import { Counter, Gauge, type Registry } from '../prometheus.ts';

export interface CredentialsMetrics {
  /** A reading of the mounted Secret that differs from the last: usable (`success`) or the state it is in. */
  reloaded(credential: string, result: string): void;
  /** @param atMs wall time of the reading that is in use. */
  loaded(credential: string, atMs: number): void;
}

export function createCredentialsMetrics(registry: Registry): CredentialsMetrics {
  const reloads = new Counter({
    name: 'token_sidecar_credentials_reload_total',
    help: 'Changes of the mounted credentials, by what was found.',
    labelNames: ['credential', 'result'],
    registers: [registry],
  });
  const loadedAt = new Gauge({
    name: 'token_sidecar_credentials_loaded_timestamp_seconds',
    help: 'Unix time at which the credentials in use were read.',
    labelNames: ['credential'],
    registers: [registry],
  });
  return {
    reloaded: (credential, result) => reloads.inc({ credential, result }),
    loaded: (credential, atMs) => loadedAt.set({ credential }, atMs / 1000),
  };
}
