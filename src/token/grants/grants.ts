/** Every grant: the files it reads, what they must hold, and its request to the provider. */

import type { CredentialSettings, JwtBearerGrant } from '../../config/config.ts';
import type { UnusableSecret } from '../../platform/mounted/mounted-secret.ts';
import type { MountedFiles } from '../client/mounted-files.ts';
import { askForClient } from './client-credentials-grant.ts';
import { askForInstallation, type GithubApp, githubApp } from './github-app.ts';
import { askForServiceAccount, type ServiceAccount, serviceAccount } from './google-service-account.ts';
import type { GrantOccasion, GrantRequest } from './grant-request.ts';
import { askByAssertion, type SigningParty, signingParty } from './jwt-bearer.ts';
import { type MountedToken, mountedToken } from './static-token.ts';
import { askByExchange, exchangedFiles, unusableExchange } from './token-exchange.ts';

/** What a grant needs beside the client; for most, nothing. */
export type GrantMaterial = SigningParty | ServiceAccount | GithubApp | MountedToken;

type Settings = Pick<CredentialSettings, 'grant' | 'clientId'>;

/** The files that the grant reads in the credential's directory, beside the client's. */
export function grantFiles({ grant, clientId }: Settings): readonly string[] {
  switch (grant?.type) {
    case undefined:
      return [];
    case 'jwt_bearer':
      return namesItself(grant) || clientId !== undefined
        ? keyFiles(grant)
        : ['client_id', ...keyFiles(grant)];
    case 'token_exchange':
      return exchangedFiles(grant);
    case 'static':
      return [grant.tokenFile];
  }
}

/** Whether the grant names the signer, so that no client id has to be read. */
function namesItself(grant: JwtBearerGrant): boolean {
  return grant.kind === 'google_service_account' || grant.issuer !== undefined;
}

function keyFiles(grant: JwtBearerGrant): readonly string[] {
  return grant.kind === 'rfc7523' && grant.certificateFile !== undefined
    ? [grant.keyFile, grant.certificateFile]
    : [grant.keyFile];
}

/** @returns undefined for a grant that needs nothing of its own, or reads it anew each time. */
export function understandGrant(
  { grant, clientId }: Settings,
  files: MountedFiles,
): GrantMaterial | UnusableSecret | undefined {
  const issuer = () => clientId ?? files.content('client_id');
  switch (grant?.type) {
    case undefined:
      return undefined;
    case 'jwt_bearer':
      if (grant.kind === 'google_service_account') return serviceAccount(grant, files);
      return grant.kind === 'github_app'
        ? githubApp(grant, issuer(), files)
        : signingParty(grant, issuer(), files);
    case 'token_exchange':
      return unusableExchange(grant, files);
    case 'static':
      return mountedToken(grant, files);
  }
}

/**
 * One request for a token.
 * @throws {UnusableFile} if a file that is read anew for each request cannot be read now.
 */
export async function grantRequest(
  config: CredentialSettings,
  material: GrantMaterial | undefined,
  occasion: GrantOccasion,
): Promise<GrantRequest> {
  const { grant } = config;
  if (grant === undefined) return askForClient(config, occasion);
  if (grant.type === 'token_exchange') return await askByExchange(grant, config, occasion);
  if (grant.type === 'jwt_bearer') {
    if (grant.kind === 'rfc7523' && material?.grant === 'jwt_bearer') {
      return askByAssertion(grant, material, config, occasion);
    }
    if (grant.kind === 'google_service_account' && material?.grant === 'google_service_account') {
      return askForServiceAccount(grant, material, config, occasion);
    }
    if (grant.kind === 'github_app' && material?.grant === 'github_app') {
      return askForInstallation(grant, material, occasion);
    }
  }
  // Cannot happen: the credentials were understood by the same settings.
  throw new Error(`the grant ${grant.type} was given the credentials of another`);
}
