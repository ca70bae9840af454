import { isDeepStrictEqual } from 'node:util';
import type { CredentialConfig } from '../config/config.ts';
import { type LiveSecretOptions, openLiveSecret } from '../credentials/live-secret.ts';
import type { MountedSecret } from '../credentials/mounted-secret.ts';
import { type CredentialsReading, credentialFiles, understandCredentials } from './client-credentials.ts';

/** The client's credentials as a live value: always the newest reading, announced when it differs from the last. */
export interface LiveCredentials {
  /** Readings that say the same hold the same object of credentials, whatever was read between them. */
  current(): CredentialsReading;
  /** Calls back after each change, good or bad. Returns the function that ends it. */
  onChange(listener: (reading: CredentialsReading) => void): () => void;
  close(): void;
}

/** Reads once, then watches. Never rejects: credentials that are not there yet are a reading like any other. */
export async function openLiveCredentials(
  config: CredentialConfig,
  options: LiveSecretOptions,
): Promise<LiveCredentials> {
  const secret = await openLiveSecret(config.directory, credentialFiles(config), options);
  const listeners = new Set<(reading: CredentialsReading) => void>();
  let lastLoaded: CredentialsReading | undefined;
  let current = understand(secret.current());

  function understand(mounted: MountedSecret): CredentialsReading {
    if (mounted.state !== 'loaded') return mounted;
    const reading = understandCredentials(config, mounted.values);
    if (reading.state !== 'loaded') return reading;
    if (lastLoaded === undefined || !isDeepStrictEqual(reading, lastLoaded)) lastLoaded = reading;
    return lastLoaded;
  }

  secret.onChange((mounted) => {
    const reading = understand(mounted);
    if (isDeepStrictEqual(reading, current)) return;
    current = reading;
    for (const listener of listeners) listener(reading);
  });

  return {
    current: () => current,
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    close() {
      listeners.clear();
      secret.close();
    },
  };
}
