/** From a request to its answer, without sockets. docs/reference/issuer.md has the order of the checks. */

import { type JWTPayload, SignJWT } from 'jose';
import { FormFault, parseForm } from '../platform/form.ts';
import type { Logger } from '../platform/log/logger.ts';
import type { Clock } from '../platform/time/clock.ts';
import type { CallerVerification } from './caller-verification.ts';
import { type Client, isScopeToken } from './clients.ts';
import type { DpopVerification, ProvenKey } from './dpop.ts';
import type { KeyRing, SigningKey } from './keys.ts';
import type { IssuerMetrics } from './metrics.ts';
import { describeRefusal, Refusal, type TokenAnswer } from './refusal.ts';

interface TokenMessage {
  readonly method: string;
  readonly target: string;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, readonly string[] | undefined>>;
  readonly body: Uint8Array | 'too_large';
  readonly address: string;
}

interface TokenServiceOptions {
  readonly path: string;
  readonly realm: string;
  /** The `iss` claim, and the default `aud`. */
  readonly issuer: string;
  readonly authenticate: CallerVerification;
  readonly verifyDpop: DpopVerification;
  readonly keys: KeyRing;
  readonly tokenLifetimeSeconds: number;
  readonly maxBodyBytes: number;
  readonly metrics: IssuerMetrics;
  readonly clock: Clock;
  readonly log: Logger;
  /** Makes a `jti`. */
  readonly tokenId: () => string;
}

/** Never rejects: other errors are logged and answered 500. */
export type TokenService = (message: TokenMessage) => Promise<TokenAnswer>;

interface Verdict {
  readonly result: Parameters<IssuerMetrics['requested']>[0];
  readonly answer: TokenAnswer;
  readonly client?: string;
  readonly reason?: string;
}

const NOT_FOUND = elsewhere('not_found', 404, 'there is only the token endpoint');
const METHOD_NOT_ALLOWED = elsewhere('method_not_allowed', 405, 'the token endpoint takes POST alone', {
  Allow: 'POST',
});

export function createTokenService(options: TokenServiceOptions): TokenService {
  const { clock, log, metrics } = options;
  return async (message) => {
    const startedAt = clock.now();
    const verdict = await judge(message, options).catch((error: unknown): Verdict => {
      log.error({ err: error }, 'token request failed');
      return refused(new Refusal('server_error', 'the token could not be issued'), options);
    });
    metrics.requested(verdict.result, (clock.now().monotonicMs - startedAt.monotonicMs) / 1000);
    const { result, client, reason, answer } = verdict;
    const facts = { result, status: answer.status, ...(client === undefined ? {} : { client }) };
    if (result === 'issued') log.debug(facts, 'token issued');
    else log.warn({ ...facts, reason }, 'token request refused');
    return answer;
  };
}

async function judge(message: TokenMessage, options: TokenServiceOptions): Promise<Verdict> {
  if (pathOf(message.target) !== options.path) return NOT_FOUND;
  if (message.method !== 'POST') return METHOD_NOT_ALLOWED;
  const repeated = ['authorization', 'content-type'].find((name) => valuesOf(message, name).length > 1);
  if (repeated !== undefined) {
    return refused(new Refusal('invalid_request', `the ${repeated} header is given more than once`), options);
  }

  const { client, named } = await options.authenticate(
    valuesOf(message, 'authorization')[0],
    message.address,
  );
  if (client instanceof Refusal) return refused(client, options, named);

  const parameters = readForm(message, options.maxBodyBytes);
  if (parameters instanceof Refusal) return refused(parameters, options, named);
  const request = readGrantRequest(parameters, client.clientId);
  if (request instanceof Refusal) return refused(request, options, named);
  const grant = decideGrant(client, request, {
    audience: options.issuer,
    lifetimeSeconds: options.tokenLifetimeSeconds,
  });
  if (grant instanceof Refusal) return refused(grant, options, named);

  const proven = await options.verifyDpop(valuesOf(message, 'dpop'), client);
  if (proven instanceof Refusal) return refused(proven, options, named);

  const key = options.keys.keyFor(grant.lifetimeSeconds);
  const facts = {
    issuer: options.issuer,
    issuedAtMs: options.clock.now().wallMs,
    tokenId: options.tokenId(),
  };
  const token = await signAccessToken(accessTokenClaims(grant, facts, proven), key);
  return {
    result: 'issued',
    client: client.clientId,
    answer: {
      status: 200,
      headers: proven?.nextNonce === undefined ? {} : { 'DPoP-Nonce': proven.nextNonce },
      body: JSON.stringify(issuedToken(token, grant, proven === undefined ? 'Bearer' : 'DPoP')),
    },
  };
}

function readForm(message: TokenMessage, maxBodyBytes: number): ReadonlyMap<string, string> | Refusal {
  const mediaType = valuesOf(message, 'content-type')[0]?.split(';', 1)[0]?.trim().toLowerCase();
  if (mediaType !== 'application/x-www-form-urlencoded') {
    return new Refusal('invalid_request', 'the media type must be application/x-www-form-urlencoded');
  }
  if (valuesOf(message, 'content-encoding').some((coding) => coding.toLowerCase() !== 'identity')) {
    return new Refusal('invalid_request', 'the form must come without a content coding');
  }
  if (message.body === 'too_large') {
    return new Refusal('invalid_request', `the form is larger than ${maxBodyBytes} bytes`);
  }
  const form = parseForm(message.body);
  return form instanceof FormFault ? new Refusal('invalid_request', form.description) : form;
}

/** A query is ignored (RFC 6749 §3.2). */
function pathOf(target: string): string {
  // The absolute form must be understood (RFC 9112 §3.2.2).
  const origin = /^https?:\/\/[^/?#]*/i.exec(target)?.[0] ?? '';
  return target.slice(origin.length).split('?', 1)[0] as string;
}

function valuesOf(message: TokenMessage, name: string): readonly string[] {
  return message.headers[name] ?? [];
}

function refused(refusal: Refusal, { realm }: TokenServiceOptions, client?: string): Verdict {
  return {
    result: refusal.code,
    answer: describeRefusal(refusal, realm),
    reason: refusal.description,
    ...(client === undefined ? {} : { client }),
  };
}

function elsewhere(
  result: Verdict['result'],
  status: number,
  reason: string,
  headers: Readonly<Record<string, string>> = {},
): Verdict {
  const body = JSON.stringify({ error: 'invalid_request', error_description: reason });
  return { result, reason, answer: { status, headers, body } };
}

interface TokenClaims {
  readonly clientId: string;
  readonly scopes: readonly string[];
  /** At least one. */
  readonly audience: readonly string[];
  readonly lifetimeSeconds: number;
}

interface GrantDefaults {
  readonly audience: string;
  readonly lifetimeSeconds: number;
}

/** A request may narrow its client's rights, never widen them. */
export function decideGrant(
  client: Client,
  request: GrantRequest,
  defaults: GrantDefaults,
): TokenClaims | Refusal {
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

// RFC 6749 §4.4.2

interface GrantRequest {
  /** Undefined if left to the service. */
  readonly scopes?: readonly string[];
  /** `audience` and `resource` (RFC 8707); undefined if left to the service. */
  readonly audience?: readonly string[];
}

/** Two methods in one request are an error (RFC 6749 §2.3). */
const OTHER_AUTHENTICATION = ['client_secret', 'client_assertion', 'client_assertion_type'];

/** @param clientId authenticated; a `client_id` parameter may only repeat it. */
function readGrantRequest(parameters: ReadonlyMap<string, string>, clientId: string): GrantRequest | Refusal {
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

/** `DPoP` for one with `cnf` (RFC 9449 §5). */
type TokenType = 'Bearer' | 'DPoP';

/** The 200 answer always has all six members. */
interface IssuedToken {
  readonly access_token: string;
  /** Seconds. */
  readonly expires_in: number;
  /** No refresh token (RFC 6749 §4.4.3). */
  readonly refresh_expires_in: 0;
  readonly token_type: TokenType;
  /** No token is revoked by its time of issue. */
  readonly 'not-before-policy': 0;
  readonly scope: string;
}

interface TokenFacts {
  readonly issuer: string;
  /** Since the Unix epoch. */
  readonly issuedAtMs: number;
  /** Never the same twice. */
  readonly tokenId: string;
}

/** RFC 9068 §2.2, and Keycloak's `azp`. The client acts for itself. */
function accessTokenClaims(
  grant: TokenClaims,
  { issuer, issuedAtMs, tokenId }: TokenFacts,
  proven: ProvenKey | undefined,
): JWTPayload {
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
    ...(proven === undefined ? {} : { cnf: { jkt: proven.thumbprint } }),
  };
}

async function signAccessToken(claims: JWTPayload, key: SigningKey): Promise<string> {
  // Widely used verifiers refuse `at+jwt` (docs/decisions/0005).
  return await new SignJWT(claims)
    .setProtectedHeader({ alg: key.algorithm, kid: key.keyId, typ: 'JWT' })
    .sign(key.privateKey);
}

function issuedToken(accessToken: string, grant: TokenClaims, tokenType: TokenType): IssuedToken {
  return {
    access_token: accessToken,
    expires_in: grant.lifetimeSeconds,
    refresh_expires_in: 0,
    token_type: tokenType,
    'not-before-policy': 0,
    scope: grant.scopes.join(' '),
  };
}
