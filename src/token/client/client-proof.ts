/** How the client proves itself to the token endpoint (RFC 6749 §2.3): one file per method. */

import type { Clock } from '../../platform/time/clock.ts';
import type { ClientCredentials } from './client-credentials.ts';
import { proveInForm, proveInHeader } from './client-secret.ts';
import { proveByAttestation } from './kubernetes-jwt.ts';
import { proveBySignature } from './private-key-jwt.ts';
import type { ProofOfClient } from './proof-of-client.ts';
import { nameClient } from './public-client.ts';
import { proveByCertificate } from './tls-client-auth.ts';

/**
 * What one request carries to show who the client is. An assertion is signed, or read, anew for each request.
 * @param tokenUrl where the request goes.
 * @throws {UnusableFile} if the token that vouches for the client cannot be read now.
 */
export async function proveClient(
  credentials: ClientCredentials,
  tokenUrl: string,
  clock: Clock,
): Promise<ProofOfClient> {
  switch (credentials.method) {
    case 'client_secret_basic':
      return proveInHeader(credentials);
    case 'client_secret_post':
      return proveInForm(credentials);
    case 'private_key_jwt':
      return proveBySignature(credentials, { tokenUrl, nowMs: clock.now().wallMs });
    case 'tls_client_auth':
      return proveByCertificate(credentials);
    case 'kubernetes_jwt':
      return proveByAttestation(credentials);
    case 'none':
      return nameClient(credentials);
  }
}
