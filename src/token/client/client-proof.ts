/** How the client proves itself to the token endpoint (RFC 6749 §2.3). */

import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Clock } from '../../clock.ts';
import { readMountedSecret } from '../../credentials/mounted-secret.ts';
import { UnusableFile } from '../../credentials/unusable-file.ts';
import { signAssertion } from './client-assertion.ts';
import {
  type AttestedClient,
  type BasicClient,
  type ClientCredentials,
  isJwt,
} from './client-credentials.ts';

export interface ProofOfClient {
  /** The Authorization field, for methods that use one. */
  readonly authorization?: string;
  /** Form parameters, for methods that use some. */
  readonly parameters: Readonly<Record<string, string>>;
}

/** RFC 7523 §2.2. */
const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

/**
 * What one request carries to show who the client is; an assertion is made, or read, for this request alone.
 * @throws {UnusableFile} when the token that vouches for the client cannot be read now.
 */
export async function proveClient(credentials: ClientCredentials, clock: Clock): Promise<ProofOfClient> {
  switch (credentials.method) {
    case 'client_secret_basic':
      return { authorization: basic(credentials), parameters: {} };
    case 'client_secret_post': {
      const { clientId, clientSecret } = credentials;
      return { parameters: { client_id: clientId, client_secret: clientSecret } };
    }
    case 'private_key_jwt': {
      const { clientId, audience, key } = credentials;
      const facts = { clientId, audience, nowMs: clock.now().wallMs, assertionId: randomUUID() };
      return { parameters: { client_id: clientId, ...assertion(signAssertion(key, facts)) } };
    }
    case 'tls_client_auth':
      // The certificate is shown in the handshake; the id says whose it should be (RFC 8705 §2).
      return { parameters: { client_id: credentials.clientId } };
    case 'kubernetes_jwt': {
      const { clientId } = credentials;
      const token = assertion(await readAttestation(credentials));
      return { parameters: clientId === undefined ? token : { client_id: clientId, ...token } };
    }
  }
}

function basic(client: BasicClient): string {
  return `Basic ${Buffer.from(basicPair(client), 'utf8').toString('base64')}`;
}

/** The id and the secret as Basic has them, before Base64. */
export function basicPair({ clientId, clientSecret, encoding }: Omit<BasicClient, 'method'>): string {
  const encode = encoding === 'form' ? formEncode : (text: string) => text;
  return `${encode(clientId)}:${encode(clientSecret)}`;
}

/** application/x-www-form-urlencoded of one value: what RFC 6749 §2.3.1 asks of both halves of Basic. */
function formEncode(text: string): string {
  return new URLSearchParams({ '': text }).toString().slice(1);
}

function assertion(jwt: string): Record<string, string> {
  return { client_assertion_type: ASSERTION_TYPE, client_assertion: jwt };
}

async function readAttestation({ directory, tokenFile }: AttestedClient): Promise<string> {
  const reading = await readMountedSecret(directory, [tokenFile]);
  if (reading.state !== 'loaded') throw new UnusableFile(reading.detail);
  const token = reading.values[tokenFile] ?? '';
  if (!isJwt(token)) throw new UnusableFile(`${join(directory, tokenFile)} is not a signed JWT`);
  return token;
}
