/** Every grant: the files it reads, what they must hold, and its request to the provider. */

import { join } from 'node:path';
import type {
  CredentialSettings,
  JwtBearerGrant,
  StaticGrant,
  TokenExchangeGrant,
} from '../../config/config.ts';
import {
  readMountedSecret,
  UnusableFile,
  type UnusableSecret,
} from '../../platform/mounted/mounted-secret.ts';
import { REFUSED_TOKEN_HASH, refusedTokenHash } from '../broker-protocol.ts';
import type { MountedFiles } from '../credentials.ts';
import { ownLifetime, type TokenResponse, wrongToken } from '../provider/token-response.ts';
import { formRequest, type GrantOccasion, type GrantRequest } from './grant-request.ts';
import {
  askByAssertion,
  askForInstallation,
  askForServiceAccount,
  type GithubApp,
  githubApp,
  type ServiceAccount,
  type SigningParty,
  serviceAccount,
  signingParty,
} from './jwt-bearer.ts';

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

/** `client_credentials`: the client asks for itself (RFC 6749 §4.4). */
function askForClient(config: CredentialSettings, { proof, tokenUrl, refused }: GrantOccasion): GrantRequest {
  const report = refused === undefined ? {} : { [REFUSED_TOKEN_HASH]: refusedTokenHash(refused) };
  return formRequest({ grant_type: 'client_credentials', ...report }, { proof, tokenUrl }, config);
}

/**
 * `token_exchange`: exchanges a token that somebody else keeps fresh, or a request's own, for one for the upstream
 * (RFC 8693 §2.1).
 */
const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';

/** Any kind of token: one line that a header could carry. */
const TOKEN_TEXT = /^[\x21-\x7e]+$/;
const EXPECTED = 'a token: one line of visible ASCII';

/** Whether each request's own token is exchanged. */
export function exchangesForRequests({ grant }: Pick<CredentialSettings, 'grant'>): boolean {
  return grant?.type === 'token_exchange' && grant.subjectTokenFile === undefined;
}

function exchangedFiles({ subjectTokenFile, actorTokenFile }: TokenExchangeGrant): readonly string[] {
  return [subjectTokenFile, actorTokenFile].filter((file) => file !== undefined);
}

/** What is wrong with the mounted tokens. They are read anew for each grant and are no part of the credentials. */
function unusableExchange(grant: TokenExchangeGrant, files: MountedFiles): UnusableSecret | undefined {
  const wrong = exchangedFiles(grant).find((name) => !TOKEN_TEXT.test(files.content(name)));
  return wrong === undefined ? undefined : files.malformed(wrong, EXPECTED);
}

/** @throws {UnusableFile} if a token cannot be read now. */
async function askByExchange(
  grant: TokenExchangeGrant,
  config: CredentialSettings,
  { proof, tokenUrl, subject }: GrantOccasion,
): Promise<GrantRequest> {
  const { directory } = config;
  // Both from the same version of the volume.
  const reading = await readMountedSecret(directory, exchangedFiles(grant));
  if (reading.state !== 'loaded') throw new UnusableFile(reading.detail);
  const tokens = Object.entries(reading.values);
  const wrong = tokens.find(([, token]) => !TOKEN_TEXT.test(token));
  if (wrong !== undefined) throw new UnusableFile(`${join(directory, wrong[0])} is not ${EXPECTED}`);
  const { subjectTokenFile, actorTokenFile } = grant;
  const subjectToken = subjectTokenFile === undefined ? subject : reading.values[subjectTokenFile];
  if (subjectToken === undefined) throw new UnusableFile('no request has brought a token to exchange');
  const own = {
    grant_type: TOKEN_EXCHANGE,
    subject_token: subjectToken,
    subject_token_type: grant.subjectTokenType,
    actor_token: actorTokenFile === undefined ? undefined : reading.values[actorTokenFile],
    actor_token_type: actorTokenFile === undefined ? undefined : grant.actorTokenType,
    requested_token_type: grant.requestedTokenType,
  };
  return formRequest(own, { proof, tokenUrl }, config);
}

/** `static`: the token is mounted, and no provider is asked. */
interface MountedToken {
  readonly grant: 'static';
  readonly token: string;
}

function mountedToken({ tokenFile }: StaticGrant, files: MountedFiles): MountedToken | UnusableSecret {
  const token = files.content(tokenFile);
  if (wrongToken(token) === undefined) return { grant: 'static', token };
  return files.malformed(tokenFile, 'a token: one line of visible ASCII, up to 64 KiB');
}

/** It lives until it is replaced, unless it states its own end. */
export function readMountedToken({ token }: MountedToken, nowMs: number): TokenResponse {
  const own = ownLifetime(token, nowMs);
  if (own === undefined)
    return { result: 'success', accessToken: token, lifetimeMs: Number.POSITIVE_INFINITY };
  const { hasEnded, lifetimeMs } = own;
  if (hasEnded) return { result: 'invalid_response', detail: 'its exp is past: replace it' };
  return { result: 'success', accessToken: token, lifetimeMs: lifetimeMs ?? Number.POSITIVE_INFINITY };
}
