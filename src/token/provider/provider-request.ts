/** One request to the provider and its whole answer, whatever that is: a redirect is one too. */

import type { Agent, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { systemCodeOf } from '../../errors.ts';
import { http } from '../../node-http.ts';
import { VERSION } from '../../version.ts';
import { decodeBody, MAX_ANSWER_BYTES, OverlongAnswer } from './answer-body.ts';

export interface ProviderRequest {
  readonly url: URL;
  /** Whose connection it goes over. */
  readonly agent: Agent;
  /** Sent by POST where there is one. */
  readonly body?: { readonly type: string; readonly text: string };
  /** The Authorization field, for clients that prove themselves there. */
  readonly authorization?: string | undefined;
  /** What the answer should be; JSON unless given. */
  readonly accept?: string | undefined;
}

export interface ProviderAnswer {
  readonly status: number;
  readonly contentType: string;
  /** The Retry-After field, when there is one. */
  readonly retryAfter: string | undefined;
  /** The Date field, when there is one: the provider's own clock. */
  readonly date: string | undefined;
  /** Decompressed and decoded. */
  readonly body: string;
}

/**
 * A kept connection ended before it brought a byte of an answer: the provider had closed it, most likely, before it saw
 * the request. Another request goes over a new connection.
 */
export class StaleConnection extends Error {
  readonly code: string;

  /** @param code the system's, of what ended it. */
  constructor(code: string) {
    super(`a kept connection was closed: ${code}`);
    this.code = code;
  }
}

/** Firewalls in front of some providers answer 403 to what names no program. */
const USER_AGENT = `token-sidecar/${VERSION}`;

/**
 * Rejects with the signal's reason once it is aborted, and otherwise with an error that has the system's code, or the
 * parser's (HPE_…) where the answer is not HTTP.
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
      // Said aloud, so that NODE_OPTIONS cannot make Node guess at answers.
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
            // It has one: this is a client.
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
      // Without the error: the socket may have nobody left who listens for one.
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
      // What comes after an answer, or becomes of the connection then, does not make it less whole.
      if (!response?.complete) fail(error);
    });
    // Unasked-for: a status like any other that brings no token, but Node hands it over with its socket.
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
    // A string in one call goes out with the head, and with its length.
    request.end(body?.text);
  });
}
