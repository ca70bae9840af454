/** The webhooks' HTTPS listener. Anybody may call: connections, bytes and times are bounded. */

import { X509Certificate } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { boundCallerConnections, drain } from '../callers/caller-connections.ts';
import { TokenBucket } from '../platform/limits/token-bucket.ts';
import type { Logger } from '../platform/log/logger.ts';
import type { ListenAddress } from '../platform/net/address.ts';
import { answersInTurn } from '../platform/net/answers-in-turn.ts';
import { BoundedRequest } from '../platform/net/body-pieces.ts';
import { enforceResponseTimeout, listenOn } from '../platform/net/listen.ts';
import type { Clock } from '../platform/time/clock.ts';
import type { ClientVerification } from '../platform/tls/certificate-files.ts';
import type { CertificateSource } from '../platform/tls/serving-certificate.ts';
import { rejectionOf } from '../platform/x509/rejection.ts';
import type { Caller, Webhook } from './admission.ts';
import type { InjectorMetrics } from './metrics.ts';
import {
  createReviewBudget,
  MAX_REVIEW_BYTES,
  type Reservation,
  type ReviewBudget,
} from './review-budget.ts';

/** All take 16 MiB of the chart's 192 MiB. */
const MAX_CONNECTIONS = 256;

/** For a TLS handshake, and again for the head of a request. */
const HANDSHAKE_MS = 5000;

/** From the head of a review to the last byte of its answer. The chart's webhooks wait 5 s. */
const REVIEW_MS = 10_000;

const CHECK_INTERVAL_MS = 1000;

/** The API server closes an idle connection first, after 90 s. */
const KEEP_ALIVE_MS = 120_000;

/** Before a review's turn. */
const READ_AHEAD_BYTES = 16 * 1024;

interface WebhookListener {
  readonly address: ListenAddress;
  /** Serves for `delayMs` more, then gives requests in flight at most `timeoutMs`. */
  drain(delayMs: number, timeoutMs: number): Promise<void>;
}

interface WebhookListenerOptions {
  readonly listen: ListenAddress;
  /** Until it has a certificate, handshakes fail. */
  readonly certificates: CertificateSource;
  readonly clients?: ClientVerification;
  readonly webhooks: Readonly<Record<string, Webhook>>;
  readonly metrics: Pick<InjectorMetrics, 'connectionDropped'>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** @throws {SidecarError} `configuration` */
export async function startWebhookListener(options: WebhookListenerOptions): Promise<WebhookListener> {
  const { clients, metrics, clock, log } = options;
  let draining = false;
  const server = createServer({
    IncomingMessage: BoundedRequest,
    handshakeTimeout: HANDSHAKE_MS,
    headersTimeout: HANDSHAKE_MS,
    requestTimeout: REVIEW_MS,
    connectionsCheckingInterval: CHECK_INTERVAL_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    highWaterMark: READ_AHEAD_BYTES,
    ...(clients === undefined ? {} : { requestCert: true, rejectUnauthorized: true }),
  });
  const stopPresenting = presentCertificates(server, options);

  const connections = boundCallerConnections({
    most: MAX_CONNECTIONS,
    onDropped: metrics.connectionDropped,
    log,
  });
  server.prependListener('connection', (socket: Socket) => connections.admit(socket));
  server.on('secureConnection', (socket: TLSSocket) => {
    if (clients === undefined || clients.accepts(socket)) return;
    metrics.connectionDropped('client_name');
    log.debug('a client certificate has none of the names that may call');
    socket.destroy();
  });
  const warnOfDistrust = createDistrustWarning(options.certificates, clock, log);
  server.on('tlsClientError', (error, { remoteAddress }) => {
    const alert = rejectionOf(error);
    metrics.connectionDropped(alert === undefined ? 'handshake' : 'untrusted');
    if (alert !== undefined) warnOfDistrust(alert, remoteAddress);
    log.debug({ err: error }, 'TLS handshake failed');
  });

  const budget = createReviewBudget(clock);
  const inTurn = answersInTurn();
  const caller: Caller = clients === undefined ? 'unverified' : 'api_server';
  server.on('request', (request, response) => {
    const { socket } = request;
    if (!connections.begin(socket)) return;
    const over = new AbortController();
    enforceResponseTimeout(response, REVIEW_MS, clock);
    response.once('close', () => {
      connections.left(socket);
      over.abort(new Error('the connection has ended'));
    });
    inTurn(response, socket.remoteAddress as string)
      .then((isItsTurn) => {
        if (!isItsTurn) throw new Error('the connection has ended');
        return answer(request, { ...options, budget, caller, signal: over.signal });
      })
      .then(
        ({ status, body }) => {
          const close = draining || !request.complete;
          response.writeHead(status, {
            'Content-Type': status === 200 ? 'application/json' : 'text/plain; charset=utf-8',
            'Content-Length': Buffer.byteLength(body),
            ...(close ? { Connection: 'close' } : {}),
          });
          response.end(body);
          connections.end(socket);
        },
        (error: unknown) => {
          log.debug({ err: error }, 'the API server went away before its review was read');
          socket.destroy();
        },
      );
  });

  const address = await listenOn(server, options.listen, '--listen').catch((error: unknown) => {
    stopPresenting();
    throw error;
  });
  return {
    address,
    async drain(delayMs, timeoutMs) {
      draining = true;
      await drain(server, connections, { delayMs, timeoutMs, closeUnused: false, clock });
      stopPresenting();
    },
  };
}

function presentCertificates(
  server: Server,
  { certificates, clients }: Pick<WebhookListenerOptions, 'certificates' | 'clients'>,
): () => void {
  function present(): void {
    const certificate = certificates.current();
    if (certificate === undefined) return;
    server.setSecureContext({
      cert: certificate.cert,
      key: certificate.key,
      minVersion: 'TLSv1.2',
      ...(clients === undefined ? {} : { ca: clients.authorities() }),
    });
  }
  present();
  const ends = [certificates.onChange(present), clients?.onChange(present)];
  return () => {
    for (const end of ends) end?.();
  };
}

interface Answering extends Pick<WebhookListenerOptions, 'webhooks' | 'clock'> {
  readonly budget: ReviewBudget;
  readonly caller: Caller;
  /** When the answer has left or the connection has ended. */
  readonly signal: AbortSignal;
}

async function answer(request: IncomingMessage, { webhooks, budget, clock, caller, signal }: Answering) {
  const [path] = (request.url as string).split('?', 1) as [string];
  const webhook = webhooks[path];
  if (webhook === undefined)
    return { status: 404, body: `not found; there is ${Object.keys(webhooks).join(', ')}` };
  if (request.method !== 'POST') return { status: 405, body: 'use POST' };
  if (!/^application\/json\s*(;|$)/i.test(String(request.headers['content-type']))) {
    return { status: 415, body: 'use application/json' };
  }
  const review = await readReviewBody(request, budget, clock, signal);
  if ('status' in review) return { status: review.status, body: 'too large' };
  const decided = await webhook(review.bytes, caller);
  const hasRoom = review.answered(Buffer.byteLength(decided.body), () => request.socket.destroy());
  return hasRoom ? decided : { status: 503, body: 'too many answers wait to be read' };
}

/** The API server has the whole review ready. */
const UPLOAD_MS = 3000;

type ReviewBody = ReceivedReview | { readonly status: 413 };

interface ReceivedReview {
  readonly bytes: Buffer;
  /** See `Reservation.answered`. */
  answered: Reservation['answered'];
}

/**
 * Or why not. Its room in `budget` is kept until it is answered, the answer's until `signal` aborts.
 * @throws the error of the connection or of `signal`.
 */
export async function readReviewBody(
  request: IncomingMessage,
  budget: ReviewBudget,
  clock: Clock,
  signal: AbortSignal,
): Promise<ReviewBody> {
  const announced = announcedBytes(request);
  if (announced > MAX_REVIEW_BYTES) return { status: 413 };
  const giveUp = (why: string) => (): void => void request.destroy(new Error(why));
  const { arrived, answered, release } = await budget.reserve(
    request.socket.remoteAddress as string,
    announced,
    signal,
    giveUp('another caller, who has less, needs the room'),
  );
  signal.addEventListener('abort', release, { once: true });
  if (signal.aborted) release();
  const cancel = clock.after(UPLOAD_MS, giveUp(`no whole review in ${UPLOAD_MS} ms`));
  try {
    const bytes = await collect(request, announced);
    if (bytes === undefined) {
      release();
      return { status: 413 };
    }
    return {
      bytes,
      answered(size, giveWayOfAnswer) {
        forget(bytes);
        return answered(size, giveWayOfAnswer);
      },
    };
  } finally {
    arrived();
    cancel();
  }
}

/** A body without a stated length may have the maximum. */
function announcedBytes({ headers }: IncomingMessage): number {
  return Number(headers['content-length'] ?? MAX_REVIEW_BYTES);
}

/** One buffer, so that only reserved memory is used; undefined for more. */
async function collect(request: IncomingMessage, announced: number): Promise<Buffer | undefined> {
  const bytes = Buffer.allocUnsafeSlow(announced);
  let length = 0;
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      if (length + chunk.length > announced) {
        forget(bytes);
        return undefined;
      }
      length += chunk.copy(bytes, length);
    }
  } catch (error) {
    forget(bytes);
    throw error;
  }
  return bytes.subarray(0, length);
}

/** Frees the memory now, since the next review takes the room at once. */
function forget({ buffer }: Buffer): void {
  (buffer as ArrayBuffer).transfer(0);
}

/** Anybody can send alerts: the metric counts them all. */
const WARNINGS = { burst: 1, perSecond: 1 / 60 };

/** At most once a minute, with what an operator has to compare. */
function createDistrustWarning(
  certificates: Pick<CertificateSource, 'current'>,
  clock: Clock,
  log: Logger,
): (alert: string, address: string | undefined) => void {
  const warnings = new TokenBucket(WARNINGS);
  return (alert, address) => {
    const shown = certificates.current();
    if (shown === undefined || !warnings.take(clock.monotonicMs())) return;
    const { subjectAltName, issuer } = new X509Certificate(shown.cert);
    log.warn(
      { alert, address, names: subjectAltName ?? 'none', issuer: issuer.replaceAll('\n', ', ') },
      'a caller does not trust the certificate of the webhooks; if it is the API server, no pod gets its sidecar. ' +
        'Compare the caBundle of the webhook configuration with the CA of the certificate (issuer), ' +
        'and its names with SERVICE.NAMESPACE.svc',
    );
  };
}
