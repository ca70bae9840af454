/** `jwt_bearer`: the grants that are an assertion signed here. */

import { randomUUID } from 'node:crypto';
import type { CredentialSettings, JwtBearerGrant } from '../../config/config.ts';
import { parseObject } from '../../platform/json-object.ts';
import type { UnusableSecret } from '../../platform/mounted/mounted-secret.ts';
import { type AssertionKey, parseAssertionKey, signAssertion } from '../client/assertion.ts';
import type { MountedFiles } from '../credentials.ts';
import { formRequest, type GrantOccasion, type GrantRequest, type TranslateAnswer } from './grant-request.ts';

const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';

/** Providers allow at least three minutes; one request needs seconds. */
const ASSERTION_SECONDS = 60;

/** As RFC 7523 §2.1 has it; so does Salesforce. */
export interface SigningParty {
  readonly grant: 'rfc7523';
  readonly key: AssertionKey;
  readonly issuer: string;
}

type Rfc7523Grant = Extract<JwtBearerGrant, { readonly kind: 'rfc7523' }>;

/** @param clientId the issuer if none is configured. */
export function signingParty(
  { keyFile, certificateFile, keyId, algorithm, issuer }: Rfc7523Grant,
  clientId: string,
  files: MountedFiles,
): SigningParty | UnusableSecret {
  const certificate = certificateFile === undefined ? undefined : files.content(certificateFile);
  const key = parseAssertionKey(files.content(keyFile), { keyId, algorithm, certificate });
  if ('expected' in key) {
    return files.malformed(key.in === 'certificate' ? (certificateFile ?? '') : keyFile, key.expected);
  }
  return { grant: 'rfc7523', key, issuer: issuer ?? clientId };
}

export function askByAssertion(
  grant: Rfc7523Grant,
  { key, issuer }: SigningParty,
  config: CredentialSettings,
  { proof, tokenUrl, nowMs }: GrantOccasion,
): GrantRequest {
  const assertion = signAssertion(key, {
    issuer,
    subject: grant.subject ?? issuer,
    audience: grant.audience ?? tokenUrl,
    nowMs,
    lifetimeSeconds: ASSERTION_SECONDS,
    assertionId: randomUUID(),
    claims: grant.claims,
  });
  return formRequest({ grant_type: JWT_BEARER, assertion }, { proof, tokenUrl }, config);
}

/**
 * With the key file of a Google service account: RFC 7523 §2.1, with the scope inside the assertion
 * (developers.google.com/identity/protocols/oauth2/service-account).
 */
export interface ServiceAccount {
  readonly grant: 'google_service_account';
  readonly key: AssertionKey;
  readonly email: string;
}

type GoogleGrant = Extract<JwtBearerGrant, { readonly kind: 'google_service_account' }>;

const EXPECTED = 'a key file of a Google service account: JSON with its type, client_email and private_key';

/** The file's `token_uri` is not followed: the configuration alone says where secrets go. */
export function serviceAccount(
  { keyFile }: GoogleGrant,
  files: MountedFiles,
): ServiceAccount | UnusableSecret {
  const fields = parseObject(files.content(keyFile)) ?? {};
  const { type, client_email: email, private_key: pem, private_key_id: keyId } = fields;
  if (type !== 'service_account' || typeof email !== 'string' || email === '' || typeof pem !== 'string') {
    return files.malformed(keyFile, EXPECTED);
  }
  const key = parseAssertionKey(pem, {
    algorithm: 'RS256',
    keyId: typeof keyId === 'string' ? keyId : undefined,
  });
  if ('expected' in key) return files.malformed(keyFile, EXPECTED);
  return { grant: 'google_service_account', key, email };
}

export function askForServiceAccount(
  grant: GoogleGrant,
  { key, email }: ServiceAccount,
  config: CredentialSettings,
  { proof, tokenUrl, nowMs }: GrantOccasion,
): GrantRequest {
  const { scope, ...others } = config;
  const assertion = signAssertion(key, {
    issuer: email,
    // A user of the domain in whose name the account may act.
    subject: grant.subject,
    audience: grant.audience ?? tokenUrl,
    nowMs,
    lifetimeSeconds: ASSERTION_SECONDS,
    claims: { scope },
  });
  return formRequest({ grant_type: JWT_BEARER, assertion }, { proof, tokenUrl }, others);
}

/**
 * For an installation of a GitHub App. Not an OAuth grant: a JWT sent as a bearer token, a JSON body, and an answer of
 * its own shape (docs.github.com/en/rest/apps/apps#create-an-installation-access-token-for-an-app).
 */
export interface GithubApp {
  readonly grant: 'github_app';
  readonly key: AssertionKey;
  /** The app's client id, or its number. */
  readonly issuer: string;
}

type GithubGrant = Extract<JwtBearerGrant, { readonly kind: 'github_app' }>;

export function githubApp(
  { keyFile, issuer }: GithubGrant,
  clientId: string,
  files: MountedFiles,
): GithubApp | UnusableSecret {
  const key = parseAssertionKey(files.content(keyFile), { algorithm: 'RS256' });
  if ('expected' in key) return files.malformed(keyFile, key.expected);
  return { grant: 'github_app', key, issuer: issuer ?? clientId };
}

export function askForInstallation(
  { repositories, permissions }: GithubGrant,
  { key, issuer }: GithubApp,
  { tokenUrl, nowMs }: Pick<GrantOccasion, 'tokenUrl' | 'nowMs'>,
): GrantRequest {
  const jwt = signAssertion(key, {
    issuer,
    audience: tokenUrl,
    nowMs,
    lifetimeSeconds: ASSERTION_SECONDS,
  });
  return {
    authorization: `Bearer ${jwt}`,
    // JSON leaves out what is undefined.
    body: { type: 'application/json', text: JSON.stringify({ repositories, permissions }) },
    accept: 'application/vnd.github+json',
    translate: translateInstallation,
  };
}

const translateInstallation: TranslateAnswer = (fields, providerNowMs) => {
  const { token, expires_at: expiresAt, message } = fields;
  if (token === undefined) {
    return typeof message === 'string' ? { error: 'github', error_description: message } : {};
  }
  const endsAtMs = typeof expiresAt === 'string' ? Date.parse(expiresAt) : Number.NaN;
  return {
    access_token: token,
    token_type: 'Bearer',
    expires_in: Number.isNaN(endsAtMs) ? undefined : Math.floor((endsAtMs - providerNowMs) / 1000),
  };
};
