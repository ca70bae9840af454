/** The API over TLS, a token endpoint, and the certificates of both sides. */

import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer as createHttpServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import { join } from 'node:path';
import { selfSigned } from '../../test/wire/certificate.ts';

/** Of this machine by every resolver, so that a proxy finds the API by its name. */
export const HOST = 'localhost';

export const TOKEN = 'a'.repeat(900);

export interface Dependencies {
  readonly directory: string;
  readonly apiPort: number;
  readonly tokenPort: number;
  /** PEM of the API's own certificate. */
  readonly caFile: string;
  /** PEM of a certificate and its key, for a proxy that shows a fixed one. */
  readonly fixedFile: string;
  close(): void;
}

export async function startSurroundings(directory: string): Promise<Dependencies> {
  const certificate = selfSigned(HOST);
  const fixed = selfSigned(HOST);
  const body = Buffer.alloc(100, 'a');
  const api = createTlsServer({ ...certificate, keepAlive: true }, (request, response) => {
    if (request.headers.authorization !== `Bearer ${TOKEN}`) response.statusCode = 401;
    response.setHeader('content-length', body.length);
    response.end(body);
  });
  api.keepAliveTimeout = 60_000;
  const tokens = createHttpServer((request, response) => {
    request.resume();
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ access_token: TOKEN, token_type: 'Bearer', expires_in: 3600 }));
  });
  const [apiPort, tokenPort] = [await listening(api), await listening(tokens)];
  const [caFile, fixedFile] = [join(directory, 'api.crt'), join(directory, 'fixed.pem')];
  await writeFile(caFile, certificate.cert);
  await writeFile(fixedFile, `${fixed.cert}${fixed.key}`);
  return {
    directory,
    apiPort,
    tokenPort,
    caFile,
    fixedFile,
    close() {
      for (const server of [api, tokens]) {
        server.close();
        server.closeAllConnections();
      }
    },
  };
}

async function listening(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}
