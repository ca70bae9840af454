import type { IncomingMessage } from 'node:http';
import { errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from 'jose';
import type { ListenAddress } from '../platform/net/address.ts';
import { listenOn } from '../platform/net/listen.ts';
import { http } from '../platform/net/node-http.ts';

interface ProtectedApi {
  readonly address: ListenAddress;
  close(): Promise<void>;
}

interface ProtectedApiOptions {
  readonly listen: ListenAddress;
  /** Finds the key that signed a token. */
  readonly keys: JWTVerifyGetKey;
  /** Required `iss` and `aud`. */
  readonly issuer: string;
  readonly audience: string;
  /** While it returns true, no token is accepted. */
  readonly refuses?: () => boolean;
}

/**
 * An API that serves only callers with a valid access token: signature, issuer, audience and expiry are verified for
 * each request. Its answer tells callers who they are.
 */
export async function startProtectedApi(options: ProtectedApiOptions): Promise<ProtectedApi> {
  const server = http.createServer(async (request, response) => {
    request.resume();
    const [status, body] = await answer(request, options);
    response.writeHead(status, {
      'Content-Type': 'application/json',
      // RFC 6750 §3
      ...(status === 401 ? { 'WWW-Authenticate': 'Bearer realm="demo"' } : {}),
    });
    response.end(`${JSON.stringify(body, null, 2)}\n`);
  });
  const address = await listenOn(server, options.listen, 'protected API');
  return {
    address,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(request: IncomingMessage, options: ProtectedApiOptions): Promise<[number, unknown]> {
  const token = /^Bearer ([^ ]+)$/i.exec(request.headers.authorization ?? '')?.[1];
  if (token === undefined) return [401, { error: 'no bearer token came with the request' }];
  if (options.refuses?.() === true) return [401, { error: 'every token is refused at present' }];
  try {
    const { issuer, audience, keys } = options;
    const { payload } = await jwtVerify(token, keys, { issuer, audience, requiredClaims: ['exp', 'jti'] });
    return [200, { method: request.method, path: request.url, caller: describeCaller(payload) }];
  } catch (error) {
    return [
      401,
      { error: 'invalid token', code: error instanceof errors.JOSEError ? error.code : 'unknown' },
    ];
  }
}

function describeCaller(claims: JWTPayload): unknown {
  return {
    client: claims['azp'],
    scope: claims['scope'],
    audience: claims.aud,
    tokenId: claims.jti,
    tokenEndsInSeconds: claims.exp === undefined ? undefined : claims.exp - Math.floor(Date.now() / 1000),
  };
}
