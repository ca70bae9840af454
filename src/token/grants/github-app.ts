/**
 * `jwt_bearer` for an installation of a GitHub App. Not an OAuth grant: a JWT sent as a bearer token, a JSON body, and
 * an answer of its own shape (docs.github.com/en/rest/apps/apps#create-an-installation-access-token-for-an-app).
 */

import type { JwtBearerGrant } from '../../config/config.ts';
import type { UnusableSecret } from '../../platform/mounted/mounted-secret.ts';
import { type AssertionKey, parseAssertionKey } from '../client/assertion-key.ts';
import type { MountedFiles } from '../client/mounted-files.ts';
import { signAssertion } from '../client/signed-assertion.ts';
import type { GrantOccasion, GrantRequest, TranslateAnswer } from './grant-request.ts';
import { ASSERTION_SECONDS } from './jwt-bearer.ts';

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
