/** `none`: the client proves nothing, because the grant itself is proof or needs none (RFC 7591 §2). */

import type { ProofOfClient } from './proof-of-client.ts';

export interface PublicClient {
  readonly method: 'none';
  /** Sent only if configured. */
  readonly clientId: string | undefined;
}

export function nameClient({ clientId }: PublicClient): ProofOfClient {
  return { parameters: clientId === undefined ? {} : { client_id: clientId } };
}
