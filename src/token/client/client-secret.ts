/** Clients that share a secret with the provider: `client_secret_basic` and `client_secret_post` (RFC 6749 §2.3.1). */

import type { ProofOfClient } from './proof-of-client.ts';

export interface BasicClient {
  readonly method: 'client_secret_basic';
  readonly encoding: 'form' | 'raw';
  readonly clientId: string;
  readonly clientSecret: string;
}

export interface PostClient {
  readonly method: 'client_secret_post';
  readonly clientId: string;
  readonly clientSecret: string;
}

export function proveInHeader(client: BasicClient): ProofOfClient {
  return {
    authorization: `Basic ${Buffer.from(basicPair(client), 'utf8').toString('base64')}`,
    parameters: {},
  };
}

export function proveInForm({ clientId, clientSecret }: PostClient): ProofOfClient {
  return { parameters: { client_id: clientId, client_secret: clientSecret } };
}

/** The id and the secret as Basic joins them, before Base64. */
export function basicPair({ clientId, clientSecret, encoding }: Omit<BasicClient, 'method'>): string {
  const encode = encoding === 'form' ? formEncode : (text: string) => text;
  return `${encode(clientId)}:${encode(clientSecret)}`;
}

/** application/x-www-form-urlencoded of one value: what RFC 6749 §2.3.1 asks of both halves of Basic. */
function formEncode(text: string): string {
  return new URLSearchParams({ '': text }).toString().slice(1);
}
