/** `jwt_bearer`: an assertion that is signed here is the grant (RFC 7523 §2.1), as with Salesforce. */

import { randomUUID } from 'node:crypto';
import type { CredentialSettings, JwtBearerGrant } from '../../config/config.ts';
import type { UnusableSecret } from '../../platform/mounted/mounted-secret.ts';
import { type AssertionKey, parseAssertionKey } from '../client/assertion-key.ts';
import type { MountedFiles } from '../client/mounted-files.ts';
import { signAssertion } from '../client/signed-assertion.ts';
import { formRequest, type GrantOccasion, type GrantRequest } from './grant-request.ts';

export const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';

/** Providers allow at least three minutes; one request needs seconds. */
export const ASSERTION_SECONDS = 60;

export interface SigningParty {
  readonly grant: 'jwt_bearer';
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
  return { grant: 'jwt_bearer', key, issuer: issuer ?? clientId };
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
