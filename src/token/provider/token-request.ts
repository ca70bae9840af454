/** One request to the token endpoint (RFC 6749 §4.4.2) and its whole answer, whatever that is: a redirect is one too. */

import type { Agent, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { systemCodeOf } from '../../errors.ts';
import { http } from '../../node-http.ts';
import type { EndpointAnswer } from './token-response.ts';

export interface TokenRequest {
  readonly url: URL;
  /** Whose connection it goes over. */
  readonly agent: Agent;
  /** The Authorization field, for clients that prove themselves there. */
  readonly authorization: string | undefined;
  readonly form: URLSearchParams;
}

/** A token and its JSON are a few KiB; a provider that sends more is not read to the end. Bytes. */
const MAX_ANSWER_BYTES = 256 * 1024;

/** The provider sent more than is read. The message may be shown: it holds nothing of the answer. */
export class OverlongAnswer extends Error {
  constructor() {
    super(`an answer of more than ${MAX_ANSWER_BYTES} bytes`);
  }
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

/**
 * Rejects with the signal's reason once it is aborted, and otherwise with an error that has the system's code, or the
 * parser's (HPE_…) where the answer is not HTTP.
 * @throws {OverlongAnswer}
 * @throws {StaleConnection}
 */
export function sendTokenRequest(
  { url, agent, authorization, form }: TokenRequest,
  signal: AbortSignal,
): Promise<Omit<EndpointAnswer, 'requestedAtMs' | 'receivedAtMs'>> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const request = http.request(url, {
      agent,
      method: 'POST',
      // Said aloud, so that NODE_OPTIONS cannot make Node guess at answers.
      insecureHTTPParser: false,
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        accept: 'application/json',
        ...(authorization === undefined ? {} : { authorization }),
      },
    });
    let connection: { readonly socket: Socket; readonly bytesBefore: number } | undefined;
    let response: IncomingMessage | undefined;

    function finish({ statusCode, headers }: IncomingMessage, body: Buffer): void {
      signal.removeEventListener('abort', giveUp);
      resolve({
        // It has one: this is a client.
        status: statusCode as number,
        contentType: headers['content-type'] ?? '',
        retryAfter: headers['retry-after'],
        date: headers.date,
        // Not toString(), which leaves a byte order mark in front of the JSON.
        body: new TextDecoder().decode(body),
      });
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
    request.end(form.toString());
  });
}
