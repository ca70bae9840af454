import { type JWTPayload, SignJWT } from 'jose';
import { type Client, isScopeToken } from './clients.ts';
import type { SigningKey } from './keys.ts';
import { Refusal } from './refusal.ts';

/** The content of a token. */
interface Grant {
  readonly clientId: string;
  readonly scopes: readonly string[];
  /** At least one. */
  readonly audience: readonly string[];
  readonly lifetimeSeconds: number;
}

interface GrantDefaults {
  /** For clients without an audience of their own. */
  readonly audience: string;
  readonly lifetimeSeconds: number;
}

/** A request may narrow its client's rights, but never widen them. */
export function decideGrant(client: Client, request: GrantRequest, defaults: GrantDefaults): Grant | Refusal {
  const allowedAudience = client.audience.length > 0 ? client.audience : [defaults.audience];
  const { scopes = client.scopes, audience = allowedAudience } = request;
  if (!scopes.every((scope) => client.scopes.includes(scope))) {
    return new Refusal('invalid_scope', 'the client may not have a scope that it asks for');
  }
  if (!audience.every((target) => allowedAudience.includes(target))) {
    return new Refusal('invalid_target', 'the client may not have an audience that it asks for');
  }
  return {
    clientId: client.clientId,
    scopes,
    audience,
    lifetimeSeconds: client.tokenLifetimeSeconds ?? defaults.lifetimeSeconds,
  };
}

// The parameters of a client credentials request (RFC 6749 §4.4.2); requests that allow no grant are refused.

interface GrantRequest {
  /** Requested scopes without repetition; undefined if the client leaves them to the service. */
  readonly scopes?: readonly string[];
  /** Requested audiences, from `audience` and `resource` (RFC 8707); undefined if left to the service. */
  readonly audience?: readonly string[];
}

/** Client authentication other than Basic. Two methods in one request are an error (RFC 6749 §2.3). */
const OTHER_AUTHENTICATION = ['client_secret', 'client_assertion', 'client_assertion_type'];

/** @param clientId the authenticated client, which a `client_id` parameter may repeat but not contradict. */
export function readGrantRequest(
  parameters: ReadonlyMap<string, string>,
  clientId: string,
): GrantRequest | Refusal {
  if (OTHER_AUTHENTICATION.some((name) => parameters.has(name))) {
    return new Refusal('invalid_request', 'the client authenticates with HTTP Basic alone, not in the form');
  }
  if ((parameters.get('client_id') ?? clientId) !== clientId) {
    return new Refusal('invalid_request', 'client_id is not the client of the Authorization header');
  }
  const grantType = parameters.get('grant_type');
  if (grantType === undefined) return new Refusal('invalid_request', 'grant_type is missing');
  if (grantType !== 'client_credentials') {
    return new Refusal('unsupported_grant_type', 'grant_type must be client_credentials');
  }
  const scopes = parameters.get('scope')?.split(' ');
  if (scopes !== undefined && !scopes.every(isScopeToken)) {
    return new Refusal('invalid_scope', 'scope must be scope tokens separated by single spaces');
  }
  const audience = ['audience', 'resource'].flatMap((name) => parameters.get(name) ?? []);
  return {
    ...(scopes === undefined ? {} : { scopes: [...new Set(scopes)] }),
    ...(audience.length === 0 ? {} : { audience: [...new Set(audience)] }),
  };
}

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
