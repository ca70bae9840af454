/** All that is mounted for a credential: what proves its client, and what its grant needs. */

import type { CredentialSettings } from '../config/config.ts';
import { readMountedSecret, type UnusableSecret } from '../platform/mounted/mounted-secret.ts';
import { type ClientCredentials, clientFiles, understandClient } from './client/client-credentials.ts';
import { mountedFiles } from './client/mounted-files.ts';
import { type GrantMaterial, grantFiles, understandGrant } from './grants/grants.ts';

/** Enough to ask for a token. */
export type Credentials = ClientCredentials & {
  /** Only for grants that need something of their own. */
  readonly material?: GrantMaterial;
};

export type CredentialsReading =
  | { readonly state: 'loaded'; readonly credentials: Credentials; readonly detail?: undefined }
  | UnusableSecret;

type Settings = Pick<CredentialSettings, 'directory' | 'clientId' | 'clientAuth' | 'grant'>;

/** The files that client and grant read in the credential's directory. */
export function credentialFiles(settings: Settings): readonly string[] {
  return [...new Set([...clientFiles(settings), ...grantFiles(settings)])];
}

/** The credentials as mounted now. Never throws: the state says what is wrong, without a secret value. */
export async function readCredentials(settings: Settings): Promise<CredentialsReading> {
  const reading = await readMountedSecret(settings.directory, credentialFiles(settings));
  return reading.state === 'loaded' ? understandCredentials(settings, reading.values) : reading;
}

/** @param files contents of `credentialFiles`, by name. */
export function understandCredentials(
  settings: Settings,
  files: Readonly<Record<string, string>>,
): CredentialsReading {
  const mounted = mountedFiles(settings.directory, files);
  const client = understandClient(settings, mounted);
  if ('state' in client) return client;
  const material = understandGrant(settings, mounted);
  if (material === undefined) return { state: 'loaded', credentials: client };
  return 'state' in material ? material : { state: 'loaded', credentials: { ...client, material } };
}
