import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTPayload, jwtVerify } from 'jose';
import { onTestFinished } from 'vitest';

/** What the upstream makes of a bearer token: its claims, or why it is refused. */
export type Verdict = { readonly claims: JWTPayload } | { readonly refused: string };

export type VerifyToken = (token: string) => Promise<Verdict>;

export interface VerifyingUpstream {
  readonly url: string;
  /** One for each request, oldest first. */
  readonly verdicts: readonly Verdict[];
  /** Each that came. */
  readonly tokens: ReadonlySet<string>;
}

/** An API that verifies the token of every request before it answers; gone after the test. */
export async function startUpstream(verify: VerifyToken): Promise<VerifyingUpstream> {
  const verdicts: Verdict[] = [];
  const tokens = new Set<string>();
  const server = createServer(async (request, response) => {
    request.resume();
    const [, token] = /^Bearer (\S+)$/.exec(request.headers.authorization ?? '') ?? [];
    if (token !== undefined) tokens.add(token);
    const verdict = token === undefined ? { refused: 'no bearer token' } : await verify(token);
    verdicts.push(verdict);
    response.writeHead('claims' in verdict ? 200 : 401, { 'content-type': 'application/json' });
    response.end(JSON.stringify(verdict));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, verdicts, tokens };
}

/** Checks signature and expiry, to the second, against keys that were fetched beforehand. */
export function verifyByKeys(keys: JSONWebKeySet, issuer: string): VerifyToken {
  const find = createLocalJWKSet(keys);
  return async (token) => {
    try {
      const { payload } = await jwtVerify(token, find, { issuer, requiredClaims: ['exp'] });
      return { claims: payload };
    } catch (error) {
      return { refused: error instanceof errors.JOSEError ? error.code : String(error) };
    }
  };
}

/** Asks the provider itself (RFC 7662), which knows of revocations too. */
export function verifyByIntrospection(url: string, clientId: string, clientSecret: string): VerifyToken {
  return async (token) => {
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        authorization: `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}`,
        connection: 'close',
      },
      body: new URLSearchParams({ token }),
    });
    const claims = (await response.json()) as JWTPayload & { active?: boolean };
    return claims.active === true ? { claims } : { refused: 'not active' };
  };
}
