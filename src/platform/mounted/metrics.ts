import { Counter, Gauge, type Registry } from '../prometheus.ts';

export interface CredentialsMetrics {
  /** @param result `success`, or the unusable state. */
  reloaded(credential: string, result: string): void;
  /** @param atMs wall time. */
  loaded(credential: string, atMs: number): void;
  watched(credential: string, byNotification: boolean): void;
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
  const watchedBy = new Gauge({
    name: 'token_sidecar_credentials_watched',
    help: '1 while the system tells of changes of the mounted credentials, 0 while they are only polled.',
    labelNames: ['credential'],
    registers: [registry],
  });
  return {
    watched: (credential, byNotification) => watchedBy.set({ credential }, byNotification ? 1 : 0),
    reloaded: (credential, result) => reloads.inc({ credential, result }),
    loaded: (credential, atMs) => loadedAt.set({ credential }, atMs / 1000),
  };
}
