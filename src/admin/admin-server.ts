/** A table of paths. A connection has one request, so that nobody holds a place between two. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from '../platform/log/logger.ts';
import type { ListenAddress } from '../platform/net/address.ts';
import { BoundedRequest } from '../platform/net/body-pieces.ts';
import { closeAtOnce, enforceResponseTimeout, HOP_FIELD, listenOn } from '../platform/net/listen.ts';
import { http } from '../platform/net/node-http.ts';
import { type Clock, systemClock } from '../platform/time/clock.ts';
import { type Audience, whyRefused } from './caller.ts';
import type { registerProcessMetrics } from './process-metrics.ts';

interface AdminResponse {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface AdminEndpoint {
  readonly method: 'GET' | 'POST';
  /** Refuse callers from other pods and machines with 403. */
  readonly loopbackOnly?: boolean;
  readonly audience?: Audience;
  /**
   * Awaited before the answer. Bounded; never rejects.
   * @param whenGone takes a function to call if the caller leaves.
   */
  due?(whenGone: (leave: () => void) => void): Promise<void>;
  /**
   * For an answer that takes time. Callers with the same path, `isLocal` and variant share it. Must have few values.
   */
  variant?(request: AdminRequest): string;
  answer(request: AdminRequest): AdminResponse | Promise<AdminResponse>;
}

interface AdminRequest {
  /** Empty if absent. */
  readonly accept: string;
  readonly query: URLSearchParams;
  /** Whether the caller may change something: from this pod or machine, and not through a proxy. */
  readonly isLocal: boolean;
}

interface AdminServer {
  readonly address: ListenAddress;
  close(): Promise<void>;
}

interface AdminOptions {
  readonly clock?: Clock;
  /** Lower-case names, besides those that are always trusted. */
  readonly hosts?: readonly string[];
  readonly metrics?: ReturnType<typeof registerProcessMetrics>;
}

/** From the head of a request to its whole answer. */
const ANSWER_MS = 20_000;

type Endpoints = Readonly<Record<string, AdminEndpoint>>;

/**
 * HEAD is answered like GET; an unknown path gets 404, another method 405, a page of another site 403.
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
  const renderings = new Renderings<AdminResponse>(clock);
  const server = http.createServer({ IncomingMessage: BoundedRequest, maxHeaderSize: 8 * 1024 });
  server.on('connection', (socket) => connections.add(socket));

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = pathOf(request);
    const endpoint = Object.hasOwn(endpoints, path) ? endpoints[path] : undefined;
    if (endpoint?.due !== undefined && request.method !== 'POST') {
      await endpoint.due((leave) => void response.once('close', leave));
      if (response.destroyed) return;
    }
    let answer: AdminResponse;
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
    enforceResponseTimeout(response, ANSWER_MS, clock);
    void respond(request, response);
  });
  const address = await listenOn(server, listen, '--admin-listen');
  return {
    address,
    close: () => closeAtOnce(server),
  };
}

export function plain(status: number, text: string): AdminResponse {
  return { status, contentType: 'text/plain; charset=utf-8', body: `${text}\n` };
}

export function json(status: number, value: unknown): AdminResponse {
  return { status, contentType: 'application/json', body: `${JSON.stringify(value, null, 2)}\n` };
}

async function answerRequest(
  request: IncomingMessage,
  endpoint: AdminEndpoint | undefined,
  endpoints: Endpoints,
  hosts: ReadonlySet<string>,
  renderings: Renderings<AdminResponse>,
): Promise<AdminResponse> {
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
  // Through a proxy in the pod, others seem to come from loopback.
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

/** Our own mark, RFC 7239, RFC 9110 §7.6.3, and those of common proxies. */
const FORWARDED = new RegExp(`^(?:${HOP_FIELD}|forwarded|via|x-forwarded-.*|x-real-ip|x-envoy-.*|l5d-.*)$`);

/** Without 127.0.0.6, which Istio's proxy uses for requests from other pods. */
const LOOPBACK_PEERS: ReadonlySet<string | undefined> = new Set(['127.0.0.1', '::ffff:127.0.0.1', '::1']);

function isLoopbackPeer(address: string | undefined): boolean {
  return LOOPBACK_PEERS.has(address);
}

function send(request: IncomingMessage, response: ServerResponse, answer: AdminResponse): void {
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

/** Usual callers need a dozen. */
const MAX_CONNECTIONS = 192;

/** For addresses that already have a connection. */
const MAX_FURTHER = 32;

/** From the connection to the head of its request. */
const REQUEST_WITHIN_MS = 1000;

interface Connection {
  readonly socket: Socket;
  readonly address: string;
  /** Whether its address had another one when it came. */
  readonly isFurther: boolean;
  /** Undefined once the request has come. */
  asked: (() => void) | undefined;
}

class AdminConnections {
  /** A `Map` would keep closed ones until a full collection (docs/decisions/0027). */
  readonly #open: Connection[] = [];

  readonly #clock: Clock;
  readonly #refused: () => void;

  constructor(clock: Clock, refused: () => void) {
    this.#clock = clock;
    this.#refused = refused;
  }

  /** Closes the socket at once if there is no place. */
  add(socket: Socket): void {
    const address = socket.remoteAddress ?? '';
    const ofAddress = this.#open.filter((each) => each.address === address).length;
    const furtherLeft = MAX_FURTHER - this.#open.filter((each) => each.isFurther).length;
    if (this.#open.length >= MAX_CONNECTIONS || ofAddress > furtherLeft) {
      socket.destroy();
      this.#refused();
      return;
    }
    const connection: Connection = {
      socket,
      address,
      isFurther: ofAddress > 0,
      // A stopped process reads first what came meanwhile.
      asked: this.#clock.after(REQUEST_WITHIN_MS, () =>
        setImmediate(() => {
          if (connection.asked !== undefined) socket.destroy();
        }),
      ),
    };
    this.#open.push(connection);
    socket.once('close', () => {
      connection.asked?.();
      this.#open.splice(this.#open.indexOf(connection), 1);
    });
  }

  /** False if it is not the connection's first request. */
  begin(socket: Socket): boolean {
    const connection = this.#open.find((each) => each.socket === socket);
    if (connection?.asked === undefined) return false;
    connection.asked();
    connection.asked = undefined;
    return true;
  }
}

/** Answers take at most a twentieth of the time. */
const REST_TIMES = 19;

/** The process may have been stopped, or out of CPU quota. */
const MAX_REST_MS = 1000;

/** Callers who wait for one name share its answer. */
export class Renderings<Answer> {
  readonly #clock: Clock;
  /** By name; not begun yet. */
  readonly #next = new Map<string, Promise<Answer>>();
  #last: Promise<unknown> = Promise.resolve();
  #restedAtMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param name one of a few: each may have one waiting. */
  share(name: string, make: () => Answer | Promise<Answer>): Promise<Answer> {
    const awaited = this.#next.get(name);
    if (awaited !== undefined) return awaited;
    const made = this.#inTurn(name, make);
    this.#next.set(name, made);
    this.#last = made.catch(() => undefined);
    return made;
  }

  async #inTurn(name: string, make: () => Answer | Promise<Answer>): Promise<Answer> {
    await this.#last;
    const restMs = this.#restedAtMs - this.#clock.monotonicMs();
    if (restMs > 0) await new Promise<void>((resolve) => void this.#clock.after(restMs, resolve));
    this.#next.delete(name);
    const begunAtMs = this.#clock.monotonicMs();
    try {
      return await make();
    } finally {
      const endedAtMs = this.#clock.monotonicMs();
      this.#restedAtMs = endedAtMs + Math.min(MAX_REST_MS, REST_TIMES * (endedAtMs - begunAtMs));
    }
  }
}
