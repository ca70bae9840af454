import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export const CLIENT_ID = 'bench';
export const CLIENT_SECRET = 'bench-secret';

export interface TokenEndpoint {
  readonly port: number;
  /** Path of the endpoint that grants tokens of this size. */
  path(tokenBytes: number): string;
  close(): Promise<void>;
}

/** An opaque token of exactly this size. It opens nothing, so it may be known. */
export function tokenOf(bytes: number): string {
  return 'opaque-0123456789-ABCDEFGHIJKLMNOPQRSTUVWXYZ-abcdefghijklmnopqrstuvwxyz_'
    .repeat(Math.ceil(bytes / 72))
    .slice(0, bytes);
}

/** Grants to anyone a token that outlives the benchmark, as large as the path says: `/token/900`. */
export async function startTokenEndpoint(): Promise<TokenEndpoint> {
  const server = createServer((request, response) => {
    request.resume();
    request.once('end', () => {
      const bytes = Number(/^\/token\/(\d{1,5})$/.exec(request.url ?? '')?.[1] ?? Number.NaN);
      if (Number.isNaN(bytes)) {
        response.writeHead(404).end();
        return;
      }
      response.writeHead(200, { 'content-type': 'application/json', 'cache-control': 'no-store' });
      const tokenType = request.headers['dpop'] === undefined ? 'Bearer' : 'DPoP';
      response.end(
        JSON.stringify({ access_token: tokenOf(bytes), token_type: tokenType, expires_in: 86_400 }),
      );
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    path: (tokenBytes) => `/token/${tokenBytes}`,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
