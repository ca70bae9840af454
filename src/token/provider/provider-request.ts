/** One request to the provider and its whole answer, whatever the status: a redirect is an answer too. */

import type { Agent, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { systemCodeOf } from '../../platform/errors.ts';
import { http } from '../../platform/net/node-http.ts';
import { VERSION } from '../../platform/version.ts';
import { decodeBody, MAX_ANSWER_BYTES, OverlongAnswer } from './answer-body.ts';

export interface ProviderRequest {
  readonly url: URL;
  /** The agent whose connection carries the request. */
  readonly agent: Agent;
  /** Makes it a POST. */
  readonly body?: { readonly type: string; readonly text: string };
  /** The Authorization field, for clients that prove themselves there. */
  readonly authorization?: string | undefined;
  /** The media type wanted; JSON by default. */
  readonly accept?: string | undefined;
}

export interface ProviderAnswer {
  readonly status: number;
  readonly contentType: string;
  /** The Retry-After field, if present. */
  readonly retryAfter: string | undefined;
  /** The Date field, if present: the provider's own clock. */
  readonly date: string | undefined;
  /** Decompressed and decoded. */
  readonly body: string;
}

/**
 * A kept-alive connection ended before the first byte of an answer: most likely the provider had closed it before it
 * saw the request. The next request uses a new connection.
 */
export class StaleConnection extends Error {
  readonly code: string;

  /** @param code the system's code for what ended the connection. */
  constructor(code: string) {
    super(`a kept connection was closed: ${code}`);
    this.code = code;
  }
}

/** Firewalls before some providers answer 403 to a request without a User-Agent. */
const USER_AGENT = `token-sidecar/${VERSION}`;

/**
 * Rejects with the signal's reason once it is aborted, otherwise with an error that has the system's code, or the
 * parser's (HPE_…) if the answer is not HTTP.
 * @throws {OverlongAnswer}
 * @throws {GarbledAnswer}
 * @throws {StaleConnection}
 */
export function sendProviderRequest(
  { url, agent, authorization, body, accept = 'application/json' }: ProviderRequest,
  signal: AbortSignal,
): Promise<ProviderAnswer> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const request = http.request(url, {
      agent,
      method: body === undefined ? 'GET' : 'POST',
      // Explicit, so that NODE_OPTIONS cannot make Node guess at answers.
      insecureHTTPParser: false,
      headers: {
        ...(body === undefined ? {} : { 'content-type': body.type }),
        accept,
        'user-agent': USER_AGENT,
        ...(authorization === undefined ? {} : { authorization }),
      },
    });
    let connection: { readonly socket: Socket; readonly bytesBefore: number } | undefined;
    let response: IncomingMessage | undefined;

    function finish({ statusCode, headers }: IncomingMessage, bytes: Buffer): void {
      signal.removeEventListener('abort', giveUp);
      const contentType = headers['content-type'] ?? '';
      decodeBody(bytes, headers['content-encoding'], contentType).then(
        (decoded) =>
          resolve({
            // Always set on the client side.
            status: statusCode as number,
            contentType,
            retryAfter: headers['retry-after'],
            date: headers.date,
            body: decoded,
          }),
        reject,
      );
    }

    function fail(error: unknown): void {
      signal.removeEventListener('abort', giveUp);
      // Without the error: the socket may have no listener left for it.
      request.destroy();
      const code = systemCodeOf(error);
      const unanswered = connection !== undefined && connection.socket.bytesRead === connection.bytesBefore;
      const lost = code === 'ECONNRESET' || code === 'EPIPE';
      reject(request.reusedSocket && unanswered && lost ? new StaleConnection(code) : error);
    }

    function giveUp(): void {
      fail(signal.reason);
    }

    signal.addEventListener('abort', giveUp);
    request.once('socket', (socket) => {
      connection = { socket, bytesBefore: socket.bytesRead };
    });
    request.on('error', (error) => {
      // Neither later bytes nor the connection's end make a complete answer less whole.
      if (!response?.complete) fail(error);
    });
    // An unasked-for upgrade is a status like any other without a token, but Node hands it over with its socket.
    request.once('upgrade', (switched, socket) => {
      socket.destroy();
      finish(switched, Buffer.alloc(0));
    });
    request.once('response', (arrived) => {
      response = arrived;
      const chunks: Buffer[] = [];
      let bytes = 0;
      arrived.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > MAX_ANSWER_BYTES) fail(new OverlongAnswer());
        else chunks.push(chunk);
      });
      // A body that breaks off.
      arrived.on('error', fail);
      arrived.once('end', () => finish(arrived, Buffer.concat(chunks)));
    });
    // A string in one call goes out together with the head, and with its length.
    request.end(body?.text);
  });
}
