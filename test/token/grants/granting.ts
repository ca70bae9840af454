/** A credential of the configuration file against a provider that the test scripts: whole, from YAML-like settings to a verdict. */

import { onTestFinished } from 'vitest';
import type { CredentialConfig } from '../../../src/config/config.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { systemClock } from '../../../src/platform/time/clock.ts';
import { readCredentials } from '../../../src/token/credentials.ts';
import { createTokenEndpoint } from '../../../src/token/provider/token-endpoint.ts';
import { mountSecret } from '../../support/kubelet-secret.ts';
import { temporaryFile } from '../../wire/temporary-file.ts';

/** @throws {ConfigurationError} */
export async function resolveCredential(settings: Record<string, unknown>): Promise<CredentialConfig> {
  const text = {
    credentials: [{ name: 'default', ...settings }],
    routes: [{ name: 'r', upstream: 'https://r' }],
  };
  const path = await temporaryFile('token-sidecar.json', JSON.stringify(text));
  const { credentials } = await loadConfig({ config: { key: '--config', text: path } });
  return credentials[0] as CredentialConfig;
}

export async function openGrant(settings: Record<string, unknown>, files: Record<string, string>) {
  const secret = await mountSecret(files);
  const config = await resolveCredential({ dir: secret.directory, ...settings });
  const endpoint = createTokenEndpoint(config, systemClock);
  onTestFinished(() => endpoint.close());
  return {
    secret,
    read: () => readCredentials(config),
    /** @param meanwhile happens between the reading of the credentials and the grant. */
    async request(meanwhile = async (): Promise<void> => undefined) {
      const reading = await readCredentials(config);
      if (reading.state !== 'loaded') throw new Error(reading.detail);
      await meanwhile();
      return await endpoint.requestToken(reading.credentials, new AbortController().signal);
    },
  };
}
