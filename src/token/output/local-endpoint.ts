/** A token endpoint on loopback, for what cannot be proxied. It also takes RFC 6749 §4.4, for OAuth libraries. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from '../../platform/log/logger.ts';
import { isLoopbackHost, type ListenAddress } from '../../platform/net/address.ts';
import { BoundedRequest } from '../../platform/net/body-pieces.ts';
import { crossSite, hostOf } from '../../platform/net/cross-site.ts';
import { closeAtOnce, enforceResponseTimeout, HOP_FIELD, listenOn } from '../../platform/net/listen.ts';
import { http } from '../../platform/net/node-http.ts';
import { type Clock, remainingMs } from '../../platform/time/clock.ts';
import { TokenUnavailable } from '../bearer-source.ts';
import type { GivenToken, TokenSource } from '../token-source.ts';

/** No form or link of another site can send it. */
const REQUEST_FIELD = 'token-sidecar-request';

/** Connections beyond these are closed. */
const MAX_CONNECTIONS = 64;

/** How long a caller may take for an answer. */
const UNREAD_MS = 20_000;

/** Of a request's body. */
const MAX_BODY_BYTES = 8192;

/** A relayed request may come from outside the pod. */
const RELAYED = ['forwarded', 'via', 'x-forwarded-for', HOP_FIELD];

interface Given {
  readonly source: Pick<TokenSource, 'name' | 'held' | 'obtain'>;
  readonly scope: string | undefined;
}

interface LocalEndpointOptions {
  readonly listen: ListenAddress;
  readonly tokens: readonly Given[];
  readonly clock: Clock;
  readonly log: Logger;
}

interface LocalEndpoint {
  readonly address: ListenAddress;
  /** These replace the tokens given before. */
  give(tokens: readonly Given[]): void;
  close(): Promise<void>;
}

interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** @throws {SidecarError} `configuration` if the address cannot be listened on. */
export async function startLocalEndpoint(options: LocalEndpointOptions): Promise<LocalEndpoint> {
  const { listen, clock, log } = options;
  let tokens = byPath(options.tokens);
  const server = http.createServer({
    IncomingMessage: BoundedRequest,
    requestTimeout: 5000,
    headersTimeout: 5000,
    keepAliveTimeout: 15_000,
    connectionsCheckingInterval: 1000,
    maxHeaderSize: 8 * 1024,
  });
  server.maxConnections = MAX_CONNECTIONS;
  const answering = new WeakSet<Socket>();
  server.on('request', (request, response) => {
    const { socket } = request;
    // A caller that sends ahead could pile up answers that nobody reads.
    if (answering.has(socket)) {
      socket.destroy();
      return;
    }
    answering.add(socket);
    const leaving = new AbortController();
    response.once('close', () => {
      answering.delete(socket);
      leaving.abort();
    });
    answerTo(request, tokens, clock, leaving.signal).then(
      (answer) => send(request, response, answer, clock),
      (error: unknown) => {
        if (response.destroyed) return;
        log.error({ err: error }, 'a request for a token failed');
        send(request, response, problem(500, 'server_error', 'an unexpected error'), clock);
      },
    );
  });
  const address = await listenOn(server, listen, 'tokenEndpoint.listen');
  return {
    address,
    give(given) {
      tokens = byPath(given);
    },
    close: () => closeAtOnce(server),
  };
}

function byPath(tokens: readonly Given[]): ReadonlyMap<string, Given> {
  return new Map(tokens.map((token) => [`/token/${token.source.name}`, token]));
}

async function answerTo(
  request: IncomingMessage,
  tokens: ReadonlyMap<string, Given>,
  clock: Clock,
  gone: AbortSignal,
): Promise<Answer> {
  const refusal = whyRefused(request);
  if (refusal !== undefined) return problem(403, 'access_denied', refusal);
  const given = tokens.get(request.url ?? '');
  if (given === undefined) {
    return problem(404, 'invalid_request', `not found; there is ${[...tokens.keys()].join(', ')}`);
  }
  if (request.method === 'POST') {
    const body = await readBody(request);
    const wrong = body === undefined ? TOO_LARGE : wrongGrant(request, body, given.scope);
    if (wrong !== undefined) return wrong;
  }
  return await giveToken(given, clock, gone);
}

function whyRefused({ method, headers, socket }: IncomingMessage): string | undefined {
  if (!isLoopbackHost(plainAddress(socket.remoteAddress))) return 'loopback callers only';
  if (!isLoopbackHost(hostOf(headers.host))) return 'ask by localhost, or an address of loopback';
  if (RELAYED.some((name) => headers[name] !== undefined)) return 'ask without a proxy';
  const caller = {
    scheme: 'http',
    authority: headers.host,
    origin: headers.origin,
    site: single(headers['sec-fetch-site']),
  } as const;
  if (crossSite(caller, () => false) !== undefined) return 'the request comes from the page of another site';
  if (method !== 'GET' && method !== 'POST') return 'use GET or POST';
  if (headers[REQUEST_FIELD] === 'true') return undefined;
  // OAuth libraries prove themselves; no form or link can.
  if (method === 'POST' && /^basic /i.test(headers.authorization ?? '')) return undefined;
  return method === 'POST'
    ? `send the field ${REQUEST_FIELD}: true, or prove yourself by HTTP Basic: any client id and secret will do`
    : `send the field ${REQUEST_FIELD}: true`;
}

/** RFC 6749 §4.4.2. The client's id does not matter. */
function wrongGrant(
  { headers }: IncomingMessage,
  body: string,
  scope: string | undefined,
): Answer | undefined {
  const type = headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase();
  if (type !== 'application/x-www-form-urlencoded') {
    return problem(400, 'invalid_request', 'expected a form: application/x-www-form-urlencoded');
  }
  const form = new URLSearchParams(body);
  const names = [...form.keys()];
  if (new Set(names).size !== names.length) {
    return problem(400, 'invalid_request', 'a parameter is there twice');
  }
  if (form.get('grant_type') !== 'client_credentials') {
    return problem(400, 'unsupported_grant_type', 'expected grant_type client_credentials');
  }
  const known = scope?.split(' ') ?? [];
  const asked = form.get('scope')?.split(' ') ?? [];
  if (asked.every((one) => one === '' || known.includes(one))) return undefined;
  const expected = scope === undefined ? 'no scope: the credential has none' : `no other scope than ${scope}`;
  return problem(400, 'invalid_scope', `expected ${expected}`);
}

async function giveToken({ source, scope }: Given, clock: Clock, gone: AbortSignal): Promise<Answer> {
  if (givable(source, clock) === undefined) {
    try {
      await source.obtain({ gone });
    } catch (error) {
      if (!(error instanceof TokenUnavailable)) throw error;
      const again = { 'Retry-After': String(error.retryAfterSeconds) };
      return { ...problem(503, 'temporarily_unavailable', error.message), headers: again };
    }
  }
  const held = givable(source, clock);
  if (held === undefined) {
    const again = { 'Retry-After': '1' };
    return { ...problem(503, 'temporarily_unavailable', 'the token has just ended'), headers: again };
  }
  const seconds = secondsLeft(held, clock);
  return {
    status: 200,
    body: {
      access_token: held.token,
      token_type: 'Bearer',
      ...(Number.isFinite(seconds) ? { expires_in: seconds } : {}),
      ...(scope === undefined ? {} : { scope }),
    },
  };
}

/** Not in the last second: clients take `expires_in: 0` for a token without end. */
function givable(source: Given['source'], clock: Clock): GivenToken | undefined {
  const held = source.held();
  return held === undefined || secondsLeft(held, clock) < 1 ? undefined : held;
}

function secondsLeft({ sendableUntil }: GivenToken, clock: Clock): number {
  return Math.floor(remainingMs(sendableUntil, clock.now()) / 1000);
}

/** Undefined if the body is too long. @throws what the socket does. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function problem(status: number, error: string, description: string): Answer {
  return { status, body: { error, error_description: description } };
}

const TOO_LARGE = problem(413, 'invalid_request', `the body is larger than ${MAX_BODY_BYTES} bytes`);

function send(
  request: IncomingMessage,
  response: ServerResponse,
  { status, body, headers }: Answer,
  clock: Clock,
): void {
  if (response.destroyed) return;
  enforceResponseTimeout(response, UNREAD_MS, clock);
  const text = `${JSON.stringify(body)}\n`;
  response.writeHead(status, {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(text),
    // RFC 6749 §5.1.
    'Cache-Control': 'no-store',
    Pragma: 'no-cache',
    'X-Content-Type-Options': 'nosniff',
    ...(request.complete ? {} : { Connection: 'close' }),
    ...headers,
  });
  response.end(text);
}

function plainAddress(address: string | undefined): string {
  return (address ?? '').replace(/^::ffff:/, '');
}

function single(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : value?.join(', ');
}
