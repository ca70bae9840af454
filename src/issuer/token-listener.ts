/** The token endpoint's sockets. Everything is answered in JSON, even what is not HTTP. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { SidecarError, systemCodeOf } from '../platform/errors.ts';
import { FairRing } from '../platform/limits/fair-queue.ts';
import type { Logger } from '../platform/log/logger.ts';
import type { ListenAddress } from '../platform/net/address.ts';
import { answersInTurn } from '../platform/net/answers-in-turn.ts';
import { BoundedRequest } from '../platform/net/body-pieces.ts';
import { enforceResponseTimeout, listenOn, readBody } from '../platform/net/listen.ts';
import { http } from '../platform/net/node-http.ts';
import type { Clock } from '../platform/time/clock.ts';
import { networkOf } from './login-throttle.ts';
import type { IssuerMetrics } from './metrics.ts';
import type { TokenAnswer } from './refusal.ts';
import type { TokenService } from './token-service.ts';

/** No cache may keep a token (RFC 6749 §5.1). */
const ANSWER_HEADERS = {
  'Content-Type': 'application/json',
  'Cache-Control': 'no-store',
  Pragma: 'no-cache',
} as const;

export interface TokenListenerLimits {
  readonly bodyBytes: number;
  readonly headerBytes: number;
  /** For a whole request to come. */
  readonly requestTimeoutMs: number;
  readonly keepAliveTimeoutMs: number;
  /** For a whole answer to be taken. */
  readonly answerTimeoutMs: number;
  readonly connections: number;
  /** How many requests may be sent ahead; one more ends the connection. */
  readonly pipelined: number;
}

export const DEFAULT_LIMITS: TokenListenerLimits = {
  bodyBytes: 16 * 1024,
  headerBytes: 16 * 1024,
  requestTimeoutMs: 10_000,
  // Longer than most clients' idle pools.
  keepAliveTimeoutMs: 75_000,
  answerTimeoutMs: 10_000,
  // With two whole heads and forms on each, 100 MB of the chart's 192 MiB.
  connections: 768,
  pipelined: 2,
};

/** How much to read after an early answer: closing with unread data resets the connection and loses the answer. */
const LINGER_MS = 1000;
const LINGER_BYTES = 1024 * 1024;

interface TokenListener {
  /** With the port that the system picked for 0. */
  readonly address: ListenAddress;
  /** Requests in flight get at most `timeoutMs`. Safe to call again. */
  close(timeoutMs: number): Promise<void>;
}

interface TokenListenerOptions {
  readonly listen: ListenAddress;
  readonly limits: TokenListenerLimits;
  /** Called once the address is known. */
  readonly endpointAt: (address: ListenAddress) => TokenService;
  readonly metrics: IssuerMetrics;
  readonly clock: Clock;
  readonly log: Logger;
}

/** @throws {SidecarError} `configuration` if the address cannot be listened on. */
export async function startTokenListener(options: TokenListenerOptions): Promise<TokenListener> {
  const { limits, clock, log, metrics } = options;
  const server = http.createServer({
    IncomingMessage: BoundedRequest,
    maxHeaderSize: limits.headerBytes,
    headersTimeout: limits.requestTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    connectionsCheckingInterval: Math.min(1000, limits.requestTimeoutMs),
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    // Checked below, so that its answer is JSON too.
    requireHostHeader: false,
  });
  // The caller may close its side (RFC 9112 §9.6). Node has no public option for this.
  Object.assign(server, { httpAllowHalfOpen: true });
  const inTurn = answersInTurn();
  const bound = boundConnections(server, {
    most: limits.connections,
    onDisplaced: () => metrics.connectionDropped('displaced'),
    log,
  });
  const address = await listenOn(server, options.listen, '--listen').catch((error: unknown) => {
    throw namingIstio(error, options.listen);
  });

  const endpoint = options.endpointAt(address);
  /** Nothing else may be written meanwhile. */
  const answering = new Tally();
  const unanswered = new Tally();
  const refused = new WeakSet<Duplex>();
  let closing: Promise<void> | undefined;

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { socket } = request;
    unanswered.add(socket);
    response.once('close', () => unanswered.remove(socket));
    if (unanswered.of(socket) > limits.pipelined) {
      // Called again for the rest of what was read.
      if (!socket.destroyed) {
        metrics.connectionDropped('sent_ahead');
        count('malformed', 400, 'too many requests were sent ahead of their answers');
      }
      // Otherwise Node would read on.
      socket.destroy();
      return;
    }
    const body = await readBody(request, limits.bodyBytes);
    if (body === 'aborted') {
      if (!refused.has(socket)) metrics.requested('aborted', 0);
      return;
    }
    answering.add(socket);
    bound.begun(socket);
    response.once('close', () => {
      answering.remove(socket);
      bound.answered(socket);
    });
    if (!(await inTurn(response, networkOf(String(socket.remoteAddress))))) {
      metrics.requested('aborted', 0);
      return;
    }
    if (hostIsAmbiguous(request)) {
      await send(request, response, count('malformed', 400, 'the request needs one Host header'));
      return;
    }
    const answer = await endpoint({
      method: request.method as string,
      target: request.url as string,
      headers: request.headersDistinct,
      body,
      address: String(socket.remoteAddress),
    });
    await send(request, response, answer);
  }

  async function send(
    request: IncomingMessage,
    response: ServerResponse,
    answer: TokenAnswer,
  ): Promise<void> {
    const unread = !request.complete;
    enforceResponseTimeout(response, limits.answerTimeoutMs, clock);
    response.writeHead(answer.status, {
      ...ANSWER_HEADERS,
      'Content-Length': Buffer.byteLength(answer.body),
      ...(unread || closing !== undefined ? { Connection: 'close' } : {}),
      ...answer.headers,
    });
    if (unread) {
      // Ending it would close the connection before the caller has the answer.
      response.write(answer.body);
      await lingerOver(request, clock);
      response.end();
    } else {
      response.end(answer.body);
    }
  }

  function count(result: 'malformed', status: number, reason: string): TokenAnswer {
    metrics.requested(result, 0);
    log.warn({ result, status, reason }, 'token request refused');
    const body = JSON.stringify({ error: 'invalid_request', error_description: reason });
    return { status, headers: {}, body };
  }

  /** Answers what is no request, and closes the connection. */
  function sendRaw(socket: Duplex, answer: TokenAnswer, reason: string): void {
    const head = { ...ANSWER_HEADERS, ...answer.headers, Connection: 'close' };
    const fields = Object.entries(head).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.end(
      `HTTP/1.1 ${answer.status} ${reason}\r\n${fields.join('')}` +
        `Content-Length: ${Buffer.byteLength(answer.body)}\r\n\r\n${answer.body}`,
    );
    socket.resume();
    const cancel = clock.after(LINGER_MS, () => socket.destroy());
    socket.once('close', cancel);
  }

  function accept(request: IncomingMessage, response: ServerResponse): void {
    handle(request, response).catch((error: unknown) => {
      log.error({ err: error }, 'token request failed');
      request.socket.destroy();
    });
  }

  server.on('request', accept);
  // An unknown expectation may be ignored (RFC 9110 §10.1.1).
  server.on('checkExpectation', accept);
  server.on('checkContinue', (request, response) => {
    // A request that announces too much is answered.
    if (Number(request.headers['content-length'] ?? 0) <= limits.bodyBytes) response.writeContinue();
    accept(request, response);
  });
  server.on('connect', (_request, socket) => {
    socket.on('error', () => socket.destroy());
    sendRaw(socket, count('malformed', 404, 'there is only the token endpoint'), 'Not Found');
  });
  server.on('clientError', (error, socket) => {
    if (refused.has(socket)) return;
    if (systemCodeOf(error) === 'ECONNRESET') {
      socket.destroy();
      return;
    }
    refused.add(socket);
    if (answering.of(socket) > 0 || !socket.writable) {
      socket.destroy();
      return;
    }
    const [status, phrase, reason] = describeClientError(systemCodeOf(error));
    sendRaw(socket, count('malformed', status, reason), phrase);
  });

  return {
    address,
    close(timeoutMs) {
      closing ??= new Promise<void>((resolve) => {
        const cancel = clock.after(timeoutMs, () => server.closeAllConnections());
        server.close(() => {
          cancel();
          resolve();
        });
        // Node 24 considers them busy, and would wait for them.
        bound.closeUnused();
      });
      return closing;
    },
  };
}

/** Istio's telemetry port, and our default. */
const ISTIO_PORT = 15090;

/** Another container's process cannot be seen, so Istio is only likely. */
function namingIstio(error: unknown, { port }: ListenAddress): unknown {
  if (!(error instanceof SidecarError) || port !== ISTIO_PORT) return error;
  if (systemCodeOf(error.cause) !== 'EADDRINUSE') return error;
  const hint = `${ISTIO_PORT} is also the telemetry port of Istio's sidecar; switch its injection off for this pod`;
  return new SidecarError('configuration', `${error.message}: ${hint}`, { cause: error });
}

class Tally {
  readonly #counts = new WeakMap<Duplex, number>();

  of(socket: Duplex): number {
    return this.#counts.get(socket) ?? 0;
  }

  add(socket: Duplex): void {
    this.#counts.set(socket, this.of(socket) + 1);
  }

  remove(socket: Duplex): void {
    this.#counts.set(socket, this.of(socket) - 1);
  }
}

function lingerOver(request: IncomingMessage, clock: Clock): Promise<void> {
  return new Promise((resolve) => {
    let bytes = 0;
    const cancel = clock.after(LINGER_MS, done);
    function done(): void {
      cancel();
      resolve();
    }
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > LINGER_BYTES) done();
    });
    request.once('end', done);
    request.once('error', done);
    request.once('close', done);
    request.resume();
  });
}

/** HTTP/1.1 requires one Host field (RFC 9112 §3.2). */
function hostIsAmbiguous(request: IncomingMessage): boolean {
  const hosts = request.headersDistinct['host']?.length ?? 0;
  return hosts > 1 || (hosts === 0 && request.httpVersion === '1.1');
}

function describeClientError(code: string | undefined): [status: number, phrase: string, reason: string] {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return [431, 'Request Header Fields Too Large', 'the header section is too large'];
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return [408, 'Request Timeout', 'the request did not arrive in time'];
    default:
      return [400, 'Bad Request', 'the request is not valid HTTP/1.1'];
  }
}

interface ConnectionBound {
  /** The connection is not given up meanwhile. */
  begun(socket: Socket): void;
  answered(socket: Socket): void;
  closeUnused(): void;
}

interface Connection {
  readonly socket: Socket;
  readonly network: string;
  requests: number;
}

interface ConnectionBoundOptions {
  readonly most: number;
  readonly onDisplaced: () => void;
  readonly log: Pick<Logger, 'warn'>;
}

/**
 * Above `most`, the connection longest without an answer goes, at the address with the most. One that is being answered
 * goes only if all there are, and the newcomer's address has fewer.
 */
export function boundConnections(
  server: Server,
  { most, onDisplaced, log }: ConnectionBoundOptions,
): ConnectionBound {
  const known = new Map<Socket, Connection>();
  /** By network; the one longest without an answer first. */
  const networks = new FairRing<Connection>();

  function forget(connection: Connection): void {
    // Called again when it has closed.
    if (known.delete(connection.socket)) networks.remove(connection.network, connection);
  }

  function giveUpOne(newcomer: Connection): void {
    const fullest = networks.most();
    const own = networks.sizeOf(newcomer.network);
    const [oldest = newcomer] = fullest;
    const given = firstIdle(fullest) ?? (fullest.size > own ? oldest : firstIdle(networks)) ?? newcomer;
    onDisplaced();
    log.warn({ address: given.network }, 'a connection was ended: there are too many');
    forget(given);
    given.socket.destroy();
  }

  server.on('connection', (socket) => {
    const connection = { socket, network: networkOf(String(socket.remoteAddress)), requests: 0 };
    known.set(socket, connection);
    networks.add(connection.network, connection);
    socket.once('close', () => forget(connection));
    if (known.size > most) giveUpOne(connection);
  });

  return {
    begun(socket) {
      const connection = known.get(socket);
      if (connection !== undefined) connection.requests++;
    },
    answered(socket) {
      const connection = known.get(socket);
      if (connection === undefined) return;
      connection.requests--;
      networks.remove(connection.network, connection);
      networks.add(connection.network, connection);
    },
    closeUnused() {
      for (const { socket } of known.values()) if (socket.bytesRead === 0) socket.destroy();
    },
  };
}

function firstIdle(connections: Iterable<Connection>): Connection | undefined {
  for (const connection of connections) if (connection.requests === 0) return connection;
  return undefined;
}
