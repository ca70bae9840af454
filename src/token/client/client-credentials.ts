/** What a client proves itself with: which mounted files its method needs, and what they must hold. */

import type { ClientAuthentication, CredentialConfig } from '../../config/config.ts';
import { readMountedSecret, type UnusableSecret } from '../../credentials/mounted-secret.ts';
import type { BasicClient, PostClient } from './client-secret.ts';
import { type AttestedClient, attestedClient } from './kubernetes-jwt.ts';
import { type MountedFiles, mountedFiles } from './mounted-files.ts';
import { type SigningClient, signingClient } from './private-key-jwt.ts';
import { CERTIFICATE_FILES, type CertifiedClient, certifiedClient } from './tls-client-auth.ts';

/** A method with everything it takes: one of these alone is enough to prove who the client is. */
export type ClientCredentials = BasicClient | PostClient | SigningClient | CertifiedClient | AttestedClient;

export type CredentialsReading =
  | { readonly state: 'loaded'; readonly credentials: ClientCredentials; readonly detail?: undefined }
  | UnusableSecret;

type CredentialSettings = Pick<CredentialConfig, 'directory' | 'clientId' | 'clientAuth'>;

/** The files that the method reads in the credential's directory. */
export function credentialFiles({ clientId, clientAuth }: CredentialSettings): readonly string[] {
  const own = methodFiles(clientAuth);
  return clientId !== undefined || clientAuth.method === 'kubernetes_jwt' ? own : ['client_id', ...own];
}

function methodFiles(clientAuth: ClientAuthentication): readonly string[] {
  switch (clientAuth.method) {
    case 'client_secret_basic':
    case 'client_secret_post':
      return ['client_secret'];
    case 'private_key_jwt': {
      const { keyFile, certificateFile } = clientAuth;
      return certificateFile === undefined ? [keyFile] : [keyFile, certificateFile];
    }
    case 'tls_client_auth':
      return CERTIFICATE_FILES;
    case 'kubernetes_jwt':
      return [clientAuth.tokenFile];
  }
}

/** The credentials as they are mounted now. Never throws; the state says what is wrong, without a value. */
export async function readCredentials(settings: CredentialSettings): Promise<CredentialsReading> {
  const reading = await readMountedSecret(settings.directory, credentialFiles(settings));
  return reading.state === 'loaded' ? understandCredentials(settings, reading.values) : reading;
}

/** @param files contents of `credentialFiles`, by name. */
export function understandCredentials(
  settings: CredentialSettings,
  files: Readonly<Record<string, string>>,
): CredentialsReading {
  const credentials = understandClient(settings, mountedFiles(settings.directory, files));
  return 'state' in credentials ? credentials : { state: 'loaded', credentials };
}

function understandClient(
  settings: CredentialSettings,
  files: MountedFiles,
): ClientCredentials | UnusableSecret {
  const { clientAuth } = settings;
  const clientId = settings.clientId ?? files.content('client_id');
  switch (clientAuth.method) {
    case 'client_secret_basic':
    case 'client_secret_post':
      return { ...clientAuth, clientId, clientSecret: files.content('client_secret') };
    case 'private_key_jwt':
      return signingClient(clientAuth, clientId, files);
    case 'tls_client_auth':
      return certifiedClient(clientId, files);
    case 'kubernetes_jwt':
      return attestedClient(clientAuth.tokenFile, settings.clientId, files);
  }
}
