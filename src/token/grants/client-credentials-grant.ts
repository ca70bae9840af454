/** `client_credentials`: the client asks for itself (RFC 6749 §4.4). */

import type { CredentialSettings } from '../../config/config.ts';
import { formRequest, type GrantOccasion, type GrantRequest } from './grant-request.ts';

export function askForClient(config: CredentialSettings, { proof }: GrantOccasion): GrantRequest {
  return formRequest({ grant_type: 'client_credentials' }, proof, config);
}
