/** One request to the provider. Redirects are not followed. */

import type { Agent, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { systemCodeOf } from '../../platform/errors.ts';
import { http } from '../../platform/net/node-http.ts';
import { VERSION } from '../../platform/version.ts';

interface ProviderRequest {
  readonly url: URL;
  readonly agent: Agent;
  readonly body?: { readonly type: string; readonly text: string };
  readonly authorization?: string | undefined;
  /** RFC 9449 §5. */
  readonly dpop?: string | undefined;
  readonly accept?: string | undefined;
}

export interface ProviderResponse {
  readonly status: number;
  readonly contentType: string;
  readonly retryAfter: string | undefined;
  readonly date: string | undefined;
  /** RFC 9449 §8. */
  readonly dpopNonce?: string | undefined;
  readonly body: string;
}

/** A kept connection that ended before any answer: most likely the provider had closed it before the request. */
export class StaleConnection extends Error {
  readonly code: string;

  constructor(code: string) {
    super(`a kept connection was closed: ${code}`);
    this.code = code;
  }
}

/** Bytes, before and after decompression. */
const MAX_ANSWER_BYTES = 256 * 1024;

/** The message may be shown. */
export class OverlongResponse extends Error {
  constructor() {
    super(`an answer of more than ${MAX_ANSWER_BYTES} bytes`);
  }
}

/** The body does not match its Content-Encoding. The message may be shown. */
export class GarbledResponse extends Error {}

/** Firewalls before some providers answer 403 to a request without a User-Agent. */
const USER_AGENT = `token-sidecar/${VERSION}`;

/**
 * Rejects with the signal's reason, or an error with the system's or the parser's code (HPE_…).
 * @throws {OverlongResponse}
 * @throws {GarbledResponse}
 * @throws {StaleConnection}
 */
export function sendProviderRequest(
  { url, agent, authorization, dpop, body, accept = 'application/json' }: ProviderRequest,
  signal: AbortSignal,
): Promise<ProviderResponse> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const request = http.request(url, {
      agent,
      method: body === undefined ? 'GET' : 'POST',
      // So that NODE_OPTIONS cannot make Node guess at answers.
      insecureHTTPParser: false,
      headers: {
        ...(body === undefined ? {} : { 'content-type': body.type }),
        accept,
        'user-agent': USER_AGENT,
        ...(authorization === undefined ? {} : { authorization }),
        ...(dpop === undefined ? {} : { dpop }),
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
            status: statusCode as number,
            contentType,
            retryAfter: headers['retry-after'],
            date: headers.date,
            dpopNonce: headers['dpop-nonce'] as string | undefined,
            body: decoded,
          }),
        reject,
      );
    }

    function fail(error: unknown): void {
      signal.removeEventListener('abort', giveUp);
      // The socket may have no listener left for an error.
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
      // A complete answer stays whole whatever follows.
      if (!response?.complete) fail(error);
    });
    // Node hands an upgrade over with its socket.
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
        if (bytes > MAX_ANSWER_BYTES) fail(new OverlongResponse());
        else chunks.push(chunk);
      });
      arrived.on('error', fail);
      arrived.once('end', () => finish(arrived, Buffer.concat(chunks)));
    });
    // A string in one call goes out with the head and its length.
    request.end(body?.text);
  });
}

type Decompress = 'unzip' | 'brotliDecompress';

/** Some providers send them unasked (RFC 9110 §8.4.1). */
const CODINGS: Readonly<Record<string, Decompress | 'none'>> = {
  identity: 'none',
  gzip: 'unzip',
  'x-gzip': 'unzip',
  deflate: 'unzip',
  br: 'brotliDecompress',
};

/**
 * @throws {OverlongResponse}
 * @throws {GarbledResponse}
 */
async function decodeBody(
  bytes: Buffer,
  contentEncoding: string | undefined,
  contentType: string,
): Promise<string> {
  const coding = (contentEncoding ?? '').trim().toLowerCase() || 'identity';
  const how = Object.hasOwn(CODINGS, coding) ? CODINGS[coding] : undefined;
  if (how === undefined)
    throw new GarbledResponse('a body in a Content-Encoding other than gzip, deflate and br');
  const plain = how === 'none' || bytes.length === 0 ? bytes : await decompress(how, bytes, coding);
  return decodeText(plain, contentType);
}

function decompress(how: Decompress, bytes: Buffer, coding: string): Promise<Buffer> {
  const zlib = process.getBuiltinModule('node:zlib');
  return new Promise((resolve, reject) => {
    const bound = { maxOutputLength: MAX_ANSWER_BYTES };
    function settle(error: Error | null, plain: Buffer): void {
      if (error === null) resolve(plain);
      else if (systemCodeOf(error) === 'ERR_BUFFER_TOO_LARGE') reject(new OverlongResponse());
      else reject(new GarbledResponse(`a body that is not ${coding}, though its Content-Encoding says so`));
    }
    if (how === 'unzip') zlib.unzip(bytes, bound, settle);
    else zlib.brotliDecompress(bytes, bound, settle);
  });
}

/** JSON is UTF-8 (RFC 8259 §8.1), but some providers use another charset. */
function decodeText(bytes: Buffer, contentType: string): string {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return new TextDecoder('utf-16le').decode(bytes);
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return new TextDecoder('utf-16be').decode(bytes);
  const [, charset = 'utf-8'] = /;\s*charset\s*=\s*"?([\w:.-]{1,40})/i.exec(contentType) ?? [];
  return decoderFor(charset).decode(bytes);
}

function decoderFor(charset: string): TextDecoder {
  try {
    return new TextDecoder(charset);
  } catch {
    // Most unknown charsets agree with ASCII on tokens.
    return new TextDecoder();
  }
}
