/** The admin listener: a table of paths, each answered from a snapshot. Apart from the data path, so that neither can starve the other's port. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ListenAddress } from '../config/config.ts';
import { listenOn } from '../listen.ts';
import type { Logger } from '../log.ts';
import { http } from '../node-http.ts';

export interface AdminAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface AdminEndpoint {
  readonly method: 'GET' | 'POST';
  /** Refuse callers from other machines (and other pods) with 403. */
  readonly loopbackOnly?: boolean;
  answer(request: AdminRequest): AdminAnswer | Promise<AdminAnswer>;
}

export interface AdminRequest {
  /** The Accept field, empty when absent. */
  readonly accept: string;
}

export interface AdminServer {
  readonly address: ListenAddress;
  close(): Promise<void>;
}

/**
 * Serves `endpoints` by path until closed. HEAD is answered like GET without the body, an unknown path 404, another
 * method 405 with `Allow`.
 * @throws {SidecarError} `configuration` when the address cannot be listened on.
 */
export async function startAdminServer(
  listen: ListenAddress,
  endpoints: Readonly<Record<string, AdminEndpoint>>,
  log: Logger,
): Promise<AdminServer> {
  const server = http.createServer({
    requestTimeout: 10_000,
    headersTimeout: 10_000,
    keepAliveTimeout: 75_000,
  });
  server.on('request', (request, response) => {
    answerRequest(request, endpoints)
      .catch((error: unknown): AdminAnswer => {
        log.error({ err: error, path: pathOf(request) }, 'admin request failed');
        return plain(500, 'internal error');
      })
      .then((answer) => send(request, response, answer));
  });
  const address = await listenOn(server, listen, '--admin-listen');
  return {
    address,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

export function plain(status: number, text: string): AdminAnswer {
  return { status, contentType: 'text/plain; charset=utf-8', body: `${text}\n` };
}

export function json(status: number, value: unknown): AdminAnswer {
  return { status, contentType: 'application/json', body: `${JSON.stringify(value, null, 2)}\n` };
}

async function answerRequest(
  request: IncomingMessage,
  endpoints: Readonly<Record<string, AdminEndpoint>>,
): Promise<AdminAnswer> {
  const path = pathOf(request);
  const endpoint = Object.hasOwn(endpoints, path) ? endpoints[path] : undefined;
  if (endpoint === undefined) return plain(404, `not found; there is ${Object.keys(endpoints).join(', ')}`);
  const allowed = endpoint.method === 'GET' ? ['GET', 'HEAD'] : ['POST'];
  if (!allowed.includes(request.method ?? '')) {
    return { ...plain(405, `use ${allowed.join(' or ')}`), headers: { Allow: allowed.join(', ') } };
  }
  if (endpoint.loopbackOnly === true && !isLoopbackPeer(request.socket.remoteAddress)) {
    return plain(403, 'loopback callers only');
  }
  return await endpoint.answer({ accept: request.headers.accept ?? '' });
}

function pathOf(request: IncomingMessage): string {
  return (request.url ?? '').split('?', 1)[0] as string;
}

function isLoopbackPeer(address: string | undefined): boolean {
  if (address === undefined) return false;
  const ipv4 = address.replace(/^::ffff:/, '');
  return ipv4 === '::1' || ipv4.startsWith('127.');
}

function send(request: IncomingMessage, response: ServerResponse, answer: AdminAnswer): void {
  request.resume();
  response.writeHead(answer.status, {
    'Content-Type': answer.contentType,
    'Content-Length': Buffer.byteLength(answer.body),
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    ...answer.headers,
  });
  response.end(request.method === 'HEAD' ? undefined : answer.body);
}
