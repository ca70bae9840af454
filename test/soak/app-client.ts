import {
  Agent,
  type ClientRequest,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeaders,
} from 'node:http';
import { buffer } from 'node:stream/consumers';
import type { ListenAddress } from '../../src/platform/net/address.ts';

export interface AppRequest {
  readonly method?: string;
  readonly path: string;
  /** One piece is sent with its length, several are sent chunked. */
  readonly body?: readonly Buffer[];
  /** Send the body only after 100. */
  readonly expectsContinue?: boolean;
  /** Not one of the kept connections. */
  readonly onNewConnection?: boolean;
}

export interface AppAnswer {
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** The app: it knows the sidecar's address and no token. Never throws anything that holds one. */
export interface AppClient {
  readonly address: ListenAddress;
  /**
   * @throws {Error} when the status is not `status`, the answer is another request's, comes without the 100 that was
   * waited for, breaks off, or nothing comes for 30 s.
   */
  exchange(request: AppRequest, status?: number): Promise<AppAnswer>;
  /** Begins a request that its caller ends or leaves. */
  begin(request: AppRequest): ClientRequest;
  /** Closes the kept connections. */
  close(): void;
}

const SILENCE_MS = 30_000;

export function createAppClient(address: ListenAddress, connections: number): AppClient {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  let count = 0;

  function begin({
    method = 'GET',
    path,
    body,
    expectsContinue,
    onNewConnection,
  }: AppRequest): ClientRequest {
    const headers: OutgoingHttpHeaders = { 'request-id': ++count };
    // An API that closes idle connections may do so when a request is on its way: it may be sent again.
    if (method === 'POST') headers['idempotency-key'] = `"${count}"`;
    if (body?.length === 1) headers['content-length'] = body[0]?.byteLength;
    if (body !== undefined && body.length > 1) headers['transfer-encoding'] = 'chunked';
    if (expectsContinue === true) headers['expect'] = '100-continue';
    const own = onNewConnection === true ? { agent: false as const } : { agent };
    const request = httpRequest({ ...address, ...own, method, path, headers });
    request.setTimeout(SILENCE_MS, () => request.destroy(new Error(`nothing came for ${SILENCE_MS} ms`)));
    return request;
  }

  async function exchange(asked: AppRequest, status = 200): Promise<AppAnswer> {
    const request = begin(asked);
    let continued = false;
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      // What fails after the head fails the response, too.
      request.on('error', reject).once('response', resolve);
      if (asked.expectsContinue !== true) {
        endWith(request, asked.body);
        return;
      }
      request.once('continue', () => {
        continued = true;
        endWith(request, asked.body);
      });
    });
    const body = await buffer(response);
    if (response.statusCode !== status) throw new Error(describeStatus(response, body));
    if (asked.expectsContinue === true && !continued) throw new Error('the answer came without 100');
    if (response.headers['request-id'] !== String(request.getHeader('request-id'))) {
      throw new Error('the answer is that of another request');
    }
    return { headers: response.headers, body };
  }

  return { address, exchange, begin, close: () => agent.destroy() };
}

function endWith(request: ClientRequest, body: readonly Buffer[] = []): void {
  for (const piece of body) request.write(piece);
  request.end();
}

/** The sidecar's own answers say why; they hold no token. */
function describeStatus({ statusCode, headers }: IncomingMessage, body: Buffer): string {
  const own = headers['token-sidecar-error'] !== undefined;
  return `status ${statusCode}${own ? ` of the sidecar: ${body.toString().slice(0, 300)}` : ' of the API'}`;
}
