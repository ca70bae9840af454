import type { CredentialConfig, CredentialSettings, ProviderAddress } from '../../src/config/config.ts';
import { RENEWAL } from '../token/policy.ts';

/** A credential with the defaults of the configuration. */
export function credentialConfig(settings: Partial<CredentialSettings> & ProviderAddress): CredentialConfig {
  return {
    name: 'default',
    directory: '/nonexistent',
    clientAuth: { method: 'client_secret_basic', encoding: 'form' },
    parameters: {},
    tls: {},
    requestTimeoutMs: 10_000,
    waitTimeoutMs: 10_000,
    renewal: RENEWAL,
    ...settings,
  };
}
