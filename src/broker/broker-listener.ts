/** The token endpoint's HTTPS listener. Anybody may call: connections, bytes and times are bounded. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server } from 'node:https';
import type { Socket } from 'node:net';
import { boundCallerConnections, drain } from '../callers/caller-connections.ts';
import type { Logger } from '../platform/log/logger.ts';
import type { ListenAddress } from '../platform/net/address.ts';
import { answersInTurn } from '../platform/net/answers-in-turn.ts';
import { BoundedRequest } from '../platform/net/body-pieces.ts';
import { enforceResponseTimeout, listenOn, readBody } from '../platform/net/listen.ts';
import { https } from '../platform/net/node-https.ts';
import type { Clock } from '../platform/time/clock.ts';
import type { CertificateSource } from '../platform/tls/serving-certificate.ts';
import {
  type BrokerResponse,
  type Message,
  onTheWire,
  READ_FIELDS,
  readAddress,
  refusal,
} from './messages.ts';
import type { BrokerMetrics, RequestResult } from './metrics.ts';
import type { TokenEndpoint } from './token-endpoint.ts';

interface BrokerListenerLimits {
  /** Beyond this, the oldest idle connection is closed. */
  readonly connections: number;
  /** For a TLS handshake, and again for the head of a request. */
  readonly handshakeMs: number;
  /** For a whole request. */
  readonly requestMs: number;
  /** From the head of a request to the last byte of its answer. */
  readonly answerMs: number;
}

export const DEFAULT_LIMITS: BrokerListenerLimits = {
  // A connection takes some 50 KiB.
  connections: 1024,
  handshakeMs: 10_000,
  requestMs: 10_000,
  answerMs: 20_000,
};

const CHECK_INTERVAL_MS = 1000;

const KEEP_ALIVE_MS = 5000;

const HEADER_BYTES = 8192;

/** 8 KiB of token with its escapes, and the other parameters. */
const BODY_BYTES = 16 * 1024;

interface BrokerListener {
  readonly address: ListenAddress;
  readonly inFlight: number;
  /** Serves for `delayMs` more, then gives requests in flight at most `timeoutMs`. */
  drain(delayMs: number, timeoutMs: number): Promise<void>;
}

interface BrokerListenerOptions {
  readonly listen: ListenAddress;
  readonly certificates: CertificateSource;
  readonly endpoint: TokenEndpoint;
  readonly limits: BrokerListenerLimits;
  readonly metrics: Pick<BrokerMetrics, 'answered' | 'connectionDropped'>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** @throws {SidecarError} `configuration` */
export async function startBrokerListener(options: BrokerListenerOptions): Promise<BrokerListener> {
  const { certificates, limits, metrics, clock, log } = options;
  let draining = false;
  let inFlight = 0;
  const server = https.createServer({
    IncomingMessage: BoundedRequest,
    minVersion: 'TLSv1.2',
    allowHalfOpen: true,
    handshakeTimeout: limits.handshakeMs,
    headersTimeout: limits.handshakeMs,
    requestTimeout: limits.requestMs,
    connectionsCheckingInterval: Math.min(CHECK_INTERVAL_MS, limits.requestMs),
    keepAliveTimeout: KEEP_ALIVE_MS,
    maxHeaderSize: HEADER_BYTES,
    highWaterMark: BODY_BYTES,
  });
  // A caller may close its side after its request (RFC 9112 §9.6). Node has no public option for this.
  Object.assign(server, { httpAllowHalfOpen: true });
  const stopPresenting = presentCertificates(server, certificates);

  const inTurn = answersInTurn();
  const connections = boundCallerConnections({
    most: limits.connections,
    onDropped: metrics.connectionDropped,
    log,
  });
  server.prependListener('connection', (socket: Socket) => connections.admit(socket));
  server.on('secureConnection', (socket: Socket) => connections.secured(socket));
  server.on('tlsClientError', (error) => {
    metrics.connectionDropped('handshake');
    log.debug({ err: error }, 'TLS handshake failed');
  });

  function serve(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    if (!connections.begin(socket)) return;
    const startedAtMs = clock.monotonicMs();
    inFlight++;
    let result: RequestResult = 'aborted';
    enforceResponseTimeout(response, limits.answerMs, clock);
    response.once('close', () => {
      inFlight--;
      connections.left(socket);
      metrics.answered(result, (clock.monotonicMs() - startedAtMs) / 1000);
    });
    const from = socket.remoteAddress as string;
    inTurn(response, from)
      .then((isItsTurn) => (isItsTurn ? answer(request, options.endpoint, startedAtMs, from) : 'aborted'))
      .then(
        (given) => {
          if (given === 'aborted') {
            socket.destroy();
            return;
          }
          result = given.kind === 'given' ? 'given' : given.code;
          const { status, headers, body } = onTheWire(given);
          response.writeHead(status, {
            ...headers,
            'Content-Length': Buffer.byteLength(body),
            ...(draining || !request.complete ? { Connection: 'close' } : {}),
          });
          response.end(body);
          connections.end(socket);
        },
        (error: unknown) => {
          log.debug({ err: error }, 'the caller went away before its request was read');
          socket.destroy();
        },
      );
  }
  server.on('request', serve);
  server.on('checkContinue', (request, response) => {
    if (readAddress(messageOf(request)).kind === 'address') response.writeContinue();
    serve(request, response);
  });

  const address = await listenOn(server, options.listen, '--listen').catch((error: unknown) => {
    stopPresenting();
    throw error;
  });
  return {
    address,
    get inFlight() {
      return inFlight;
    },
    async drain(delayMs, timeoutMs) {
      draining = true;
      await drain(server, connections, { delayMs, timeoutMs, closeUnused: true, clock });
      stopPresenting();
    },
  };
}

function presentCertificates(server: Server, certificates: CertificateSource): () => void {
  function present(): void {
    const certificate = certificates.current();
    if (certificate === undefined) return;
    server.setSecureContext({ cert: certificate.cert, key: certificate.key, minVersion: 'TLSv1.2' });
  }
  present();
  return certificates.onChange(present);
}

async function answer(
  request: IncomingMessage,
  endpoint: TokenEndpoint,
  beganAtMs: number,
  from: string,
): Promise<BrokerResponse | 'aborted'> {
  const address = readAddress(messageOf(request));
  if (address.kind === 'refused') return address;
  const body = await readBody(request, BODY_BYTES);
  if (body === 'aborted') return body;
  if (body === 'too_large') return refusal('request_too_large', `the form has at most ${BODY_BYTES} bytes`);
  return await endpoint(address, body, beganAtMs, from);
}

function messageOf({ method, url, rawHeaders }: IncomingMessage): Message {
  const headers: Record<string, string[]> = {};
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = (rawHeaders[index] as string).toLowerCase();
    if (!READ_FIELDS.has(name)) continue;
    headers[name] ??= [];
    headers[name].push(rawHeaders[index + 1] as string);
  }
  return { method, target: url ?? '', headers };
}
