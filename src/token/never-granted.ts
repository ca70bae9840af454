/** Why a credential has never had a token, for readers of `kubectl describe pod`. */

import type { CredentialSettings, ProviderAddress } from '../config/config.ts';
import type { TokenSnapshot } from './token-snapshot.ts';
import { type NoToken, whyNoToken } from './why-no-token.ts';

/**
 * Undefined once the credential has had a token. The code decides the exit status of the process; the message names the
 * credential.
 * @param config of the credential that the snapshot shows.
 */
export function whyNeverGranted(
  config: Pick<CredentialSettings, 'name' | 'directory'> & ProviderAddress,
  { obtainedFirstToken, credentials, lastFailure }: TokenSnapshot,
): NoToken | undefined {
  if (obtainedFirstToken) return undefined;
  const { code, message } = whyNoToken(config, { unusable: credentials.detail, lastFailure });
  return { code, message: `credential ${config.name}: ${message}` };
}
