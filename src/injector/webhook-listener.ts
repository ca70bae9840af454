/** The webhooks' HTTPS listener: one certificate at a time, replaced under way, and a drain that drops no review. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { Clock } from '../clock.ts';
import type { ListenAddress } from '../config/config.ts';
import { listenOn } from '../listen.ts';
import type { Logger } from '../log.ts';
import type { AdmissionAnswer, Webhook } from './admission.ts';
import type { CertificateSource, ServingCertificate } from './certificate/serving-certificate.ts';

/** A pod is at most 1.5 MiB, what etcd takes; a review holds it once, with some kilobytes around it. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;

/** The API server gives up after the webhook's timeout, 30 s at most. */
const REQUEST_TIMEOUT_MS = 30_000;

/** Longer than the API server keeps an idle connection (90 s), so that it is the one who closes. */
const KEEP_ALIVE_MS = 120_000;

export interface WebhookListener {
  readonly address: ListenAddress;
  /**
   * Goes on serving for `delayMs`, while Services still send reviews here, and asks for each connection to be closed;
   * then stops accepting and lets what is in flight finish for at most `timeoutMs`.
   */
  drain(delayMs: number, timeoutMs: number): Promise<void>;
}

export interface WebhookListenerOptions {
  readonly listen: ListenAddress;
  /** Before it has a certificate, handshakes fail. */
  readonly certificates: CertificateSource;
  /** By path. */
  readonly webhooks: Readonly<Record<string, Webhook>>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** @throws {SidecarError} `configuration` when the address cannot be listened on. */
export async function startWebhookListener(options: WebhookListenerOptions): Promise<WebhookListener> {
  const { certificates, webhooks, clock, log } = options;
  let draining = false;
  const server = createServer({
    requestTimeout: REQUEST_TIMEOUT_MS,
    headersTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
  });

  /** Connections that are open keep theirs: both certificates are good while one takes the place of the other. */
  function present(certificate: ServingCertificate): void {
    server.setSecureContext({ cert: certificate.cert, key: certificate.key, minVersion: 'TLSv1.2' });
  }
  const first = certificates.current();
  if (first !== undefined) present(first);
  const unsubscribe = certificates.onChange(present);

  server.on('request', (request, response) => {
    answer(request, webhooks).then(
      ({ status, body }) => {
        // Only a whole request may be followed by another on the same connection.
        const close = draining || !request.complete;
        response.writeHead(status, {
          'Content-Type': status === 200 ? 'application/json' : 'text/plain; charset=utf-8',
          'Content-Length': Buffer.byteLength(body),
          ...(close ? { Connection: 'close' } : {}),
        });
        response.end(body);
      },
      (error: unknown) => abandon(error, request, response),
    );
  });
  server.on('tlsClientError', (error) => log.debug({ err: error }, 'TLS handshake failed'));

  function abandon(error: unknown, request: IncomingMessage, response: ServerResponse): void {
    log.debug({ err: error }, 'the API server went away before its review was read');
    response.destroy();
    request.destroy();
  }

  const address = await listenOn(server, options.listen, '--listen').catch((error: unknown) => {
    unsubscribe();
    throw error;
  });
  return {
    address,
    async drain(delayMs, timeoutMs) {
      draining = true;
      await new Promise<void>((resolve) => void clock.after(delayMs, resolve));
      await new Promise<void>((resolve) => {
        const cancel = clock.after(timeoutMs, () => server.closeAllConnections());
        server.close(() => {
          cancel();
          resolve();
        });
        server.closeIdleConnections();
      });
      unsubscribe();
    },
  };
}

async function answer(
  request: IncomingMessage,
  webhooks: Readonly<Record<string, Webhook>>,
): Promise<AdmissionAnswer> {
  const [path = ''] = (request.url ?? '').split('?', 1);
  const webhook = Object.hasOwn(webhooks, path) ? webhooks[path] : undefined;
  if (webhook === undefined)
    return { status: 404, body: `not found; there is ${Object.keys(webhooks).join(', ')}` };
  if (request.method !== 'POST') return { status: 405, body: 'use POST' };
  if (!/^application\/json\s*(;|$)/i.test(request.headers['content-type'] ?? '')) {
    return { status: 415, body: 'use application/json' };
  }
  const body = await readBody(request);
  return body === undefined ? { status: 413, body: 'too large' } : await webhook(body);
}

/** The body, or undefined as soon as it is known to be too large. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  if (Number(request.headers['content-length'] ?? 0) > MAX_BODY_BYTES) return undefined;
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
