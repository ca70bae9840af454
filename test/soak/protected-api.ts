import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Duplex } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { createRemoteJWKSet, errors, jwtVerify } from 'jose';
import { type RawData, WebSocketServer } from 'ws';
import type { ListenAddress } from '../../src/platform/net/address.ts';
import { listenOn } from '../../src/platform/net/listen.ts';
import { DOWNLOAD_BYTES, digestOf, payloadFrom } from './payload.ts';
import { AUDIENCE, type Provider } from './provider.ts';
import { closeIdleSoon } from './short-keep-alive.ts';

/** The upstream: verifies the token of every request, and answers so that the app can verify the answer. */
export interface ProtectedApi {
  readonly address: ListenAddress;
  /** Distinct tokens (`jti`) that were accepted. */
  tokensSeen(): number;
  /** Requests whose token was missing or not accepted, by reason. */
  readonly refusals: ReadonlyMap<string, number>;
  /** Resolves once a token was accepted that was granted for secret number `n`. */
  seenFrom(n: number): Promise<void>;
  /** Answers and WebSockets that are not over. */
  open(): number;
  close(): Promise<void>;
}

const EVENT_INTERVAL_MS = 100;

export interface ProtectedApiOptions {
  readonly leewaySeconds: number;
  readonly keepAlive: 'long' | 'short';
  /** It speaks TLS, if it has one. */
  readonly identity: { readonly cert: string; readonly key: string } | undefined;
}

export async function startProtectedApi(
  provider: Provider,
  { leewaySeconds, keepAlive, identity }: ProtectedApiOptions,
): Promise<ProtectedApi> {
  const keys = createRemoteJWKSet(new URL(provider.jwksUrl));
  const seen = new Set<string>();
  const refusals = new Map<string, number>();
  const awaited = new Map<string, PromiseWithResolvers<void>>();
  let openAnswers = 0;

  function awaitScope(scope: string): PromiseWithResolvers<void> {
    const known = awaited.get(scope) ?? Promise.withResolvers<void>();
    awaited.set(scope, known);
    return known;
  }

  async function accepts({ headers }: IncomingMessage): Promise<boolean> {
    try {
      const token = /^Bearer ([^ ]+)$/.exec(headers.authorization ?? '')?.[1] ?? '';
      const { payload } = await jwtVerify(token, keys, {
        issuer: provider.issuer,
        audience: AUDIENCE,
        requiredClaims: ['exp', 'jti'],
        clockTolerance: leewaySeconds,
      });
      seen.add(payload.jti as string);
      awaitScope(String(payload['scope'])).resolve();
      return true;
    } catch (error) {
      const reason = error instanceof errors.JOSEError ? error.code : 'unknown';
      refusals.set(reason, (refusals.get(reason) ?? 0) + 1);
      return false;
    }
  }

  async function serve(request: IncomingMessage, response: ServerResponse, expects: boolean): Promise<void> {
    openAnswers += 1;
    response.once('close', () => {
      openAnswers -= 1;
    });
    response.setHeader('request-id', request.headers['request-id'] ?? 'none');
    if (await accepts(request)) {
      if (expects) response.writeContinue();
      await answer(request, response);
      return;
    }
    request.resume();
    response.writeHead(401, { 'WWW-Authenticate': 'Bearer realm="soak"' }).end();
  }

  const server =
    identity === undefined ? createServer() : createTlsServer({ cert: identity.cert, key: identity.key });
  if (keepAlive === 'short') closeIdleSoon(server);
  const onRequest = (expects: boolean) => (request: IncomingMessage, response: ServerResponse) => {
    // What can fail here is reading a body whose sender has left.
    serve(request, response, expects).catch(() => response.destroy());
  };
  server.on('request', onRequest(false));
  server.on('checkContinue', onRequest(true));

  const sockets = new WebSocketServer({ noServer: true });
  sockets.on('connection', (socket) => {
    socket.on('message', (data: RawData, isBinary: boolean) => socket.send(data, { binary: isBinary }));
    socket.on('error', () => socket.terminate());
  });
  server.on('upgrade', async (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => socket.destroy());
    if (await accepts(request)) {
      sockets.handleUpgrade(request, socket, head, (opened) => sockets.emit('connection', opened, request));
    } else {
      socket.end('HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
    }
  });

  const address = await listenOn(server, { host: '127.0.0.1', port: 0 }, 'protected API');
  return {
    address,
    refusals,
    tokensSeen: () => seen.size,
    seenFrom: (n) => awaitScope(`secret-${n}`).promise,
    open: () => openAnswers + sockets.clients.size,
    close: () =>
      new Promise((resolve) => {
        for (const socket of sockets.clients) socket.terminate();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? '', 'http://api');
  const number = (name: string): number => Number(url.searchParams.get(name));
  switch (`${request.method} ${url.pathname}`) {
    case 'GET /small':
      send(response, Buffer.from(JSON.stringify({ asked: url.search })));
      return;
    case 'POST /echo':
      send(response, await buffer(request));
      return;
    case 'POST /digest':
      send(response, Buffer.from(digestOf(await buffer(request))));
      return;
    case 'GET /payload':
    case 'HEAD /payload':
      if (number('chunked') === 0) response.setHeader('Content-Length', DOWNLOAD_BYTES);
      response.end(payloadFrom(number('offset'), DOWNLOAD_BYTES));
      return;
    case 'GET /nothing':
      response.writeHead(204).end();
      return;
    case 'GET /events':
      sendEvents(response, number('count'));
      return;
    case 'GET /never':
      return;
    default:
      response.writeHead(404).end();
  }
}

function send(response: ServerResponse, body: Buffer): void {
  response.writeHead(200, { 'Content-Length': body.byteLength }).end(body);
}

/** Each event says when it was sent. */
function sendEvents(response: ServerResponse, count: number): void {
  let sent = 0;
  response.writeHead(200, { 'Content-Type': 'text/event-stream' });
  const next = (): void => {
    response.write(`id: ${sent}\ndata: ${performance.now()}\n\n`);
    sent += 1;
    if (sent < count) return;
    clearInterval(timer);
    response.end();
  };
  const timer = setInterval(next, EVENT_INTERVAL_MS);
  response.once('close', () => clearInterval(timer));
  next();
}
