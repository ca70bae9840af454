/** `client_credentials`: the client asks for itself (RFC 6749 §4.4). */

import type { CredentialSettings } from '../../config/config.ts';
import { REFUSED_TOKEN_HASH, refusedTokenHash } from '../refused-token.ts';
import { formRequest, type GrantOccasion, type GrantRequest } from './grant-request.ts';

export function askForClient(
  config: CredentialSettings,
  { proof, tokenUrl, refused }: GrantOccasion,
): GrantRequest {
  const report = refused === undefined ? {} : { [REFUSED_TOKEN_HASH]: refusedTokenHash(refused) };
  return formRequest({ grant_type: 'client_credentials', ...report }, { proof, tokenUrl }, config);
}
