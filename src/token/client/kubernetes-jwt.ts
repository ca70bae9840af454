/** `kubernetes_jwt`: the cluster vouches for the client in the pod's service-account token (RFC 7523 §2.2). */

import { join } from 'node:path';
import { readMountedSecret, type UnusableSecret } from '../../platform/mounted/mounted-secret.ts';
import { UnusableFile } from '../../platform/mounted/unusable-file.ts';
import { isJwt, type MountedFiles } from './mounted-files.ts';
import { assertionParameters, type ProofOfClient } from './proof-of-client.ts';

/**
 * The cluster vouches for the client, in a token that is replaced hourly. The token is read anew for each grant and is
 * no part of these credentials, which stay the same when it changes.
 */
export interface AttestedClient {
  readonly method: 'kubernetes_jwt';
  readonly directory: string;
  readonly tokenFile: string;
  /** Sent only if configured: Keycloak refuses an id that is not the token's own subject. */
  readonly clientId: string | undefined;
}

export function attestedClient(
  tokenFile: string,
  clientId: string | undefined,
  files: MountedFiles,
): AttestedClient | UnusableSecret {
  if (!isJwt(files.content(tokenFile))) return files.malformed(tokenFile, 'a signed JWT');
  return { method: 'kubernetes_jwt', tokenFile, directory: files.directory, clientId };
}

/** @throws {UnusableFile} if the token cannot be read now. */
export async function proveByAttestation(client: AttestedClient): Promise<ProofOfClient> {
  const token = assertionParameters(await readJwtFile(client.directory, client.tokenFile));
  return { parameters: client.clientId === undefined ? token : { client_id: client.clientId, ...token } };
}

/**
 * The present text of a JWT that somebody else keeps fresh.
 * @throws {UnusableFile} if it cannot be read or is no JWT.
 */
async function readJwtFile(directory: string, name: string): Promise<string> {
  const reading = await readMountedSecret(directory, [name]);
  if (reading.state !== 'loaded') throw new UnusableFile(reading.detail);
  const token = reading.values[name] ?? '';
  if (!isJwt(token)) throw new UnusableFile(`${join(directory, name)} is not a signed JWT`);
  return token;
}
