/** What a client proves itself with: which mounted files its method needs, and what they must hold. */

import type { ClientAuthentication, CredentialSettings } from '../../config/config.ts';
import type { UnusableSecret } from '../../platform/mounted/mounted-secret.ts';
import type { BasicClient, PostClient } from './client-secret.ts';
import { type AttestedClient, attestedClient } from './kubernetes-jwt.ts';
import type { MountedFiles } from './mounted-files.ts';
import { type SigningClient, signingClient } from './private-key-jwt.ts';
import type { PublicClient } from './public-client.ts';
import { CERTIFICATE_FILES, type CertifiedClient, certifiedClient } from './tls-client-auth.ts';

/** A method with everything it takes: one of these is enough to prove who the client is. */
export type ClientCredentials =
  | BasicClient
  | PostClient
  | SigningClient
  | CertifiedClient
  | AttestedClient
  | PublicClient;

type Settings = Pick<CredentialSettings, 'clientId' | 'clientAuth'>;

/** Methods that name a client only if one is configured. */
const NAMELESS: ReadonlySet<ClientAuthentication['method']> = new Set(['kubernetes_jwt', 'none']);

/** The files that the method reads in the credential's directory. */
export function clientFiles({ clientId, clientAuth }: Settings): readonly string[] {
  const own = methodFiles(clientAuth);
  return clientId !== undefined || NAMELESS.has(clientAuth.method) ? own : ['client_id', ...own];
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
    case 'none':
      return [];
  }
}

/** @param files contents of `clientFiles`. */
export function understandClient(
  settings: Settings,
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
    case 'none':
      return { method: 'none', clientId: settings.clientId };
  }
}
