/** `static`: the token is mounted, and no provider is asked. */

import type { StaticGrant } from '../../config/config.ts';
import type { UnusableSecret } from '../../platform/mounted/mounted-secret.ts';
import type { MountedFiles } from '../client/mounted-files.ts';
import { ownLifetime } from '../provider/token-lifetime.ts';
import { type TokenResponse, wrongToken } from '../provider/token-response.ts';

export interface MountedToken {
  readonly grant: 'static';
  readonly token: string;
}

export function mountedToken({ tokenFile }: StaticGrant, files: MountedFiles): MountedToken | UnusableSecret {
  const token = files.content(tokenFile);
  if (wrongToken(token) === undefined) return { grant: 'static', token };
  return files.malformed(tokenFile, 'a token: one line of visible ASCII, up to 64 KiB');
}

/** It lives until it is replaced, unless it states its own end. */
export function readMountedToken({ token }: MountedToken, nowMs: number): TokenResponse {
  const own = ownLifetime(token, nowMs);
  if (own === undefined)
    return { result: 'success', accessToken: token, lifetimeMs: Number.POSITIVE_INFINITY };
  const { hasEnded, lifetimeMs } = own;
  if (hasEnded) return { result: 'invalid_response', detail: 'its exp is past: replace it' };
  return { result: 'success', accessToken: token, lifetimeMs: lifetimeMs ?? Number.POSITIVE_INFINITY };
}
