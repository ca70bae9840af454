/**
 * The admin listener: a table of paths, each answered from a snapshot. Separate from the data path, so that neither can
 * starve the other's port. A connection has one request: nobody holds a place that others need between two of them.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from '../platform/log/logger.ts';
import type { ListenAddress } from '../platform/net/address.ts';
import { endUnlessAnswered, HOP_FIELD, listenOn } from '../platform/net/listen.ts';
import { http } from '../platform/net/node-http.ts';
import { type Clock, systemClock } from '../platform/time/clock.ts';
import { type Audience, whyRefused } from './caller.ts';
import { AdminConnections } from './connections.ts';
import type { AdminMetrics } from './process-metrics.ts';
import { Renderings } from './renderings.ts';

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
  /** Programs by default. */
  readonly audience?: Audience;
  /**
   * Awaited before the request is answered. Bounded; never rejects.
   * @param whenGone takes a function to be called when the caller has gone.
   */
  due?(whenGone: (leave: () => void) => void): Promise<void>;
  /**
   * For an answer that takes time to make: it is made when those before it are, and shared. Names what it depends on, in
   * one of a few words, besides the path and whether the caller is local. Without this, an answer waits for no other.
   */
  variant?(request: AdminRequest): string;
  answer(request: AdminRequest): AdminAnswer | Promise<AdminAnswer>;
}

export interface AdminRequest {
  /** The Accept field, empty if absent. */
  readonly accept: string;
  readonly query: URLSearchParams;
  /** Whether the caller may change something: it comes from this machine or pod, and not through a sidecar. */
  readonly isLocal: boolean;
}

interface AdminServer {
  readonly address: ListenAddress;
  close(): Promise<void>;
}

interface AdminOptions {
  /** The system's by default. */
  readonly clock?: Clock;
  /** Lower-case names under which people may come, besides those that nobody outside can make resolve to us. */
  readonly hosts?: readonly string[];
  readonly metrics?: AdminMetrics;
}

/** From the head of a request to the last byte of its answer. */
const ANSWER_MS = 20_000;

type Endpoints = Readonly<Record<string, AdminEndpoint>>;

/**
 * Serves `endpoints` by path until closed. HEAD is answered like GET without the body, an unknown path with 404,
 * another method with 405 and `Allow`, a request from another site's page with 403. However many ask, they have
 * `MAX_CONNECTIONS` connections; however slowly they read, an answer takes `ANSWER_MS`.
 * @throws {SidecarError} `configuration` if the address cannot be listened on.
 */
export async function startAdminServer(
  listen: ListenAddress,
  endpoints: Endpoints,
  log: Logger,
  options: AdminOptions = {},
): Promise<AdminServer> {
  const { clock = systemClock, metrics } = options;
  const hosts = new Set(options.hosts);
  const connections = new AdminConnections(clock, () => metrics?.connectionRefused());
  const renderings = new Renderings<AdminAnswer>(clock);
  const server = http.createServer({ maxHeaderSize: 8 * 1024 });
  server.on('connection', (socket) => connections.add(socket));

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = pathOf(request);
    const endpoint = Object.hasOwn(endpoints, path) ? endpoints[path] : undefined;
    if (endpoint?.due !== undefined && request.method !== 'POST') {
      await endpoint.due((leave) => void response.once('close', leave));
      if (response.destroyed) return;
    }
    let answer: AdminAnswer;
    try {
      answer = await answerRequest(request, endpoint, endpoints, hosts, renderings);
    } catch (error) {
      log.error({ err: error, path }, 'admin request failed');
      answer = plain(500, 'internal error');
    }
    send(request, response, answer);
  }

  server.on('request', (request, response) => {
    const { socket } = request;
    if (!connections.begin(socket)) {
      socket.destroy();
      return;
    }
    endUnlessAnswered(response, ANSWER_MS, clock);
    void respond(request, response);
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
  endpoint: AdminEndpoint | undefined,
  endpoints: Endpoints,
  hosts: ReadonlySet<string>,
  renderings: Renderings<AdminAnswer>,
): Promise<AdminAnswer> {
  const refusal = whyRefused(request.method, request.headers, endpoint?.audience ?? 'programs', hosts);
  if (refusal !== undefined) return plain(403, refusal);
  if (endpoint === undefined) return plain(404, `not found; there is ${Object.keys(endpoints).join(', ')}`);
  const allowed = endpoint.method === 'GET' ? ['GET', 'HEAD'] : ['POST'];
  if (!allowed.includes(request.method ?? '')) {
    return { ...plain(405, `use ${allowed.join(' or ')}`), headers: { Allow: allowed.join(', ') } };
  }
  const isOnLoopback = isLoopbackPeer(request.socket.remoteAddress);
  if (endpoint.loopbackOnly === true && !isOnLoopback) {
    return plain(403, 'loopback callers only');
  }
  // Through a proxy in the pod, others seem to come from loopback, too: a sidecar, a mesh, nginx.
  const isForwarded = Object.keys(request.headers).some((name) => FORWARDED.test(name));
  if (endpoint.loopbackOnly === true && isForwarded) {
    return plain(403, 'loopback callers only: ask without a proxy');
  }
  const asked: AdminRequest = {
    accept: request.headers.accept ?? '',
    query: new URLSearchParams((request.url ?? '').split('?', 2)[1] ?? ''),
    isLocal: isOnLoopback && !isForwarded,
  };
  const variant = endpoint.variant?.(asked);
  if (variant === undefined) return await endpoint.answer(asked);
  return await renderings.share(`${pathOf(request)} ${asked.isLocal} ${variant}`, () =>
    endpoint.answer(asked),
  );
}

function pathOf(request: IncomingMessage): string {
  return (request.url ?? '').split('?', 1)[0] as string;
}

/**
 * Fields that show that a proxy has forwarded the request: our own mark, RFC 7239, RFC 9110 §7.6.3, and those of meshes
 * and proxies.
 */
const FORWARDED = new RegExp(`^(?:${HOP_FIELD}|forwarded|via|x-forwarded-.*|x-real-ip|x-envoy-.*|l5d-.*)$`);

/** Istio's proxy uses 127.0.0.6 for requests from other pods. */
const LOOPBACK_PEERS: ReadonlySet<string | undefined> = new Set(['127.0.0.1', '::ffff:127.0.0.1', '::1']);

function isLoopbackPeer(address: string | undefined): boolean {
  return LOOPBACK_PEERS.has(address);
}

function send(request: IncomingMessage, response: ServerResponse, answer: AdminAnswer): void {
  request.resume();
  response.writeHead(answer.status, {
    'Content-Type': answer.contentType,
    'Content-Length': Buffer.byteLength(answer.body),
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    Connection: 'close',
    ...answer.headers,
  });
  response.end(request.method === 'HEAD' ? undefined : answer.body);
}
