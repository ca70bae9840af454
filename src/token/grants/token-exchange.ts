/**
 * `token_exchange`: exchanges a token that somebody else keeps fresh, or a request's own, for one for the upstream
 * (RFC 8693 §2.1).
 */

import { join } from 'node:path';
import type { CredentialSettings, TokenExchangeGrant } from '../../config/config.ts';
import { readMountedSecret, type UnusableSecret } from '../../platform/mounted/mounted-secret.ts';
import { UnusableFile } from '../../platform/mounted/unusable-file.ts';
import type { MountedFiles } from '../client/mounted-files.ts';
import { formRequest, type GrantOccasion, type GrantRequest } from './grant-request.ts';

const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';

/** Any kind of token: one line that a header could carry. */
const TOKEN_TEXT = /^[\x21-\x7e]+$/;
const EXPECTED = 'a token: one line of visible ASCII';

/** Whether each request's own token is exchanged. */
export function exchangesForRequests({ grant }: Pick<CredentialSettings, 'grant'>): boolean {
  return grant?.type === 'token_exchange' && grant.subjectTokenFile === undefined;
}

export function exchangedFiles({ subjectTokenFile, actorTokenFile }: TokenExchangeGrant): readonly string[] {
  return [subjectTokenFile, actorTokenFile].filter((file) => file !== undefined);
}

/** What is wrong with the mounted tokens. They are read anew for each grant and are no part of the credentials. */
export function unusableExchange(grant: TokenExchangeGrant, files: MountedFiles): UnusableSecret | undefined {
  const wrong = exchangedFiles(grant).find((name) => !TOKEN_TEXT.test(files.content(name)));
  return wrong === undefined ? undefined : files.malformed(wrong, EXPECTED);
}

/** @throws {UnusableFile} if a token cannot be read now. */
export async function askByExchange(
  grant: TokenExchangeGrant,
  config: CredentialSettings,
  { proof, tokenUrl, subject }: GrantOccasion,
): Promise<GrantRequest> {
  const { directory } = config;
  // Both from the same version of the volume.
  const reading = await readMountedSecret(directory, exchangedFiles(grant));
  if (reading.state !== 'loaded') throw new UnusableFile(reading.detail);
  const tokens = Object.entries(reading.values);
  const wrong = tokens.find(([, token]) => !TOKEN_TEXT.test(token));
  if (wrong !== undefined) throw new UnusableFile(`${join(directory, wrong[0])} is not ${EXPECTED}`);
  const { subjectTokenFile, actorTokenFile } = grant;
  const subjectToken = subjectTokenFile === undefined ? subject : reading.values[subjectTokenFile];
  if (subjectToken === undefined) throw new UnusableFile('no request has brought a token to exchange');
  const own = {
    grant_type: TOKEN_EXCHANGE,
    subject_token: subjectToken,
    subject_token_type: grant.subjectTokenType,
    actor_token: actorTokenFile === undefined ? undefined : reading.values[actorTokenFile],
    actor_token_type: actorTokenFile === undefined ? undefined : grant.actorTokenType,
    requested_token_type: grant.requestedTokenType,
  };
  return formRequest(own, { proof, tokenUrl }, config);
}
