import { type JWTPayload, SignJWT } from 'jose';
import type { Grant } from './grant.ts';
import type { SigningKey } from './signing-key.ts';

/** The token endpoint's 200 answer, always with all six members. */
interface IssuedToken {
  readonly access_token: string;
  /** Seconds. */
  readonly expires_in: number;
  /** 0: this grant comes without a refresh token (RFC 6749 §4.4.3). */
  readonly refresh_expires_in: 0;
  readonly token_type: 'Bearer';
  /** 0: no token is revoked by its time of issue. */
  readonly 'not-before-policy': 0;
  /** Granted scopes, separated by spaces; may be empty. */
  readonly scope: string;
}

interface TokenFacts {
  /** The `iss` claim. */
  readonly issuer: string;
  /** Milliseconds since the Unix epoch. */
  readonly issuedAtMs: number;
  /** The `jti` claim; never the same twice. */
  readonly tokenId: string;
}

/** Claims of RFC 9068 §2.2, and Keycloak's `azp`. The client acts for itself, so it is also the subject. */
export function accessTokenClaims(grant: Grant, { issuer, issuedAtMs, tokenId }: TokenFacts): JWTPayload {
  const issuedAt = Math.floor(issuedAtMs / 1000);
  return {
    iss: issuer,
    sub: grant.clientId,
    aud: grant.audience.length === 1 ? (grant.audience[0] as string) : [...grant.audience],
    azp: grant.clientId,
    client_id: grant.clientId,
    iat: issuedAt,
    exp: issuedAt + grant.lifetimeSeconds,
    jti: tokenId,
    scope: grant.scopes.join(' '),
  };
}

export async function signAccessToken(claims: JWTPayload, key: SigningKey): Promise<string> {
  // Not `at+jwt`: widely used verifiers refuse it unless told otherwise; see docs/decisions/0005.
  return await new SignJWT(claims)
    .setProtectedHeader({ alg: key.algorithm, kid: key.keyId, typ: 'JWT' })
    .sign(key.privateKey);
}

export function issuedToken(accessToken: string, grant: Grant): IssuedToken {
  return {
    access_token: accessToken,
    expires_in: grant.lifetimeSeconds,
    refresh_expires_in: 0,
    token_type: 'Bearer',
    'not-before-policy': 0,
    scope: grant.scopes.join(' '),
  };
}
