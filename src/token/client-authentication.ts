/** How the client proves itself to the token endpoint (RFC 6749 §2.3). */

import type { CredentialConfig } from '../config/config.ts';

export interface ClientCredentials {
  readonly client_id: string;
  readonly client_secret: string;
}

export interface ProofOfClient {
  /** The Authorization field, for methods that use one. */
  readonly authorization?: string;
  /** Form parameters, for methods that use some. */
  readonly parameters: Readonly<Record<string, string>>;
}

type AuthenticationSettings = Pick<CredentialConfig, 'clientAuth' | 'basicEncoding'>;

export function proveClient(credentials: ClientCredentials, settings: AuthenticationSettings): ProofOfClient {
  const { client_id: id, client_secret: secret } = credentials;
  switch (settings.clientAuth) {
    case 'client_secret_basic': {
      const encode = settings.basicEncoding === 'form' ? formEncode : (text: string) => text;
      const pair = Buffer.from(`${encode(id)}:${encode(secret)}`, 'utf8').toString('base64');
      return { authorization: `Basic ${pair}`, parameters: {} };
    }
    case 'client_secret_post':
      return { parameters: { client_id: id, client_secret: secret } };
  }
}

/** application/x-www-form-urlencoded of one value: what RFC 6749 §2.3.1 asks of both halves of Basic. */
function formEncode(text: string): string {
  return new URLSearchParams({ '': text }).toString().slice(1);
}
