import { Gauge, type Registry } from '../../platform/prometheus.ts';

export interface TokenFileMetrics {
  /** @param isCurrent whether the file is as it should be: with the held token, or absent where none may be sent. */
  written(credential: string, isCurrent: boolean): void;
}

export function createTokenFileMetrics(registry: Registry): TokenFileMetrics {
  const current = new Gauge({
    name: 'token_sidecar_token_file_current',
    help: "1 while the token's file holds the token in use, or is absent because there is none; 0 while it could not be written or removed.",
    labelNames: ['credential'],
    registers: [registry],
  });
  return {
    written: (credential, isCurrent) => current.set({ credential }, isCurrent ? 1 : 0),
  };
}
