/** `private_key_jwt`: the client signs an assertion about itself (RFC 7523 §2.2). */

import { randomUUID } from 'node:crypto';
import type { PrivateKeyJwt } from '../../config/config.ts';
import type { UnusableSecret } from '../../platform/mounted/mounted-secret.ts';
import { type AssertionKey, parseAssertionKey } from './assertion-key.ts';
import type { MountedFiles } from './mounted-files.ts';
import { assertionParameters, type ProofOfClient } from './proof-of-client.ts';
import { signAssertion } from './signed-assertion.ts';

export interface SigningClient {
  readonly method: 'private_key_jwt';
  readonly clientId: string;
  readonly key: AssertionKey;
  /** The assertion's `aud`; the token endpoint's URL unless given. */
  readonly audience?: string | undefined;
}

export function signingClient(
  { method, keyFile, certificateFile, keyId, algorithm, audience }: PrivateKeyJwt,
  clientId: string,
  files: MountedFiles,
): SigningClient | UnusableSecret {
  const certificate = certificateFile === undefined ? undefined : files.content(certificateFile);
  const key = parseAssertionKey(files.content(keyFile), { keyId, algorithm, certificate });
  if ('expected' in key) {
    return files.malformed(key.in === 'certificate' ? (certificateFile ?? '') : keyFile, key.expected);
  }
  return { method, clientId, key, ...(audience === undefined ? {} : { audience }) };
}

/** Long enough for clocks that differ, too short to be worth stealing: an assertion is used once, at once. */
const LIFETIME_SECONDS = 60;

export function proveBySignature(
  { clientId, key, audience }: SigningClient,
  { tokenUrl, nowMs }: { readonly tokenUrl: string; readonly nowMs: number },
): ProofOfClient {
  const assertion = signAssertion(key, {
    issuer: clientId,
    subject: clientId,
    audience: audience ?? tokenUrl,
    nowMs,
    lifetimeSeconds: LIFETIME_SECONDS,
    assertionId: randomUUID(),
  });
  return { parameters: { client_id: clientId, ...assertionParameters(assertion) } };
}
