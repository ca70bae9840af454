/**
 * `jwt_bearer` with the key file of a Google service account: RFC 7523 §2.1, with the scope inside the assertion
 * (developers.google.com/identity/protocols/oauth2/service-account).
 */

import type { CredentialSettings, JwtBearerGrant } from '../../config/config.ts';
import type { UnusableSecret } from '../../platform/mounted/mounted-secret.ts';
import { type AssertionKey, parseAssertionKey } from '../client/assertion-key.ts';
import type { MountedFiles } from '../client/mounted-files.ts';
import { signAssertion } from '../client/signed-assertion.ts';
import { parseObject } from '../json-object.ts';
import { formRequest, type GrantOccasion, type GrantRequest } from './grant-request.ts';
import { ASSERTION_SECONDS, JWT_BEARER } from './jwt-bearer.ts';

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
