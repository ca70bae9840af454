import { once } from 'node:events';
import {
  createSecureServer,
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  type ServerOptions,
  type Settings,
} from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import type { UpstreamProtocol } from '../../../src/config/config.ts';
import type { ListenAddress } from '../../../src/platform/net/address.ts';
import { type Certificate, selfSigned } from '../certificate.ts';
import { overTls } from '../raw-upstream.ts';
import { temporaryFile } from '../temporary-file.ts';

/** What the upstreams of this run are spoken to in, where that is HTTP/2. */
export const HTTP2: UpstreamProtocol = overTls ? 'h2' : 'h2c';

/** One request as it arrived. */
export interface Arrived {
  readonly stream: ServerHttp2Stream;
  readonly headers: IncomingHttpHeaders;
  /** Name, value, …, as they came. */
  readonly raw: readonly string[];
  /** The whole body, and the trailers after it. */
  body(): Promise<{ readonly text: string; readonly trailers: IncomingHttpHeaders }>;
}

export type Answering = (arrived: Arrived) => void | Promise<void>;

/** A server of `node:http2`, over TLS or plain as the run has it. */
export interface NodeUpstream {
  readonly address: ListenAddress;
  readonly protocol: 'http' | 'https';
  readonly caFile: string | undefined;
  readonly authority: string;
  /** Every request, in order of arrival. */
  readonly arrived: readonly Arrived[];
  /** Every session, and every connection that was accepted, be it HTTP/1.1's. */
  readonly sessions: readonly ServerHttp2Session[];
  readonly connections: () => number;
}

let ownCertificate: Certificate | undefined;

/** A certificate for loopback, and the file that makes it trusted. */
export async function loopbackCertificate(): Promise<Certificate & { caFile: string }> {
  ownCertificate ??= selfSigned('127.0.0.1', 'localhost');
  return { ...ownCertificate, caFile: await temporaryFile('http2-ca.crt', ownCertificate.cert) };
}

/** Listens on loopback, and is gone when the test is over. */
export async function startHttp2(
  answer: Answering,
  settings: Settings = {},
  options: ServerOptions = {},
  transport: 'plain' | 'tls' = overTls ? 'tls' : 'plain',
): Promise<NodeUpstream> {
  const tls = transport === 'tls' ? await loopbackCertificate() : undefined;
  const server: Http2Server = tls
    ? createSecureServer({ key: tls.key, cert: tls.cert, settings, ...options, allowHTTP1: false })
    : createServer({ settings, ...options });
  const sockets = new Set<Socket>();
  let accepted = 0;
  server.on('connection', (socket: Socket) => {
    accepted++;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  const sessions: ServerHttp2Session[] = [];
  server.on('session', (session) => {
    sessions.push(session);
    session.on('error', () => {});
  });
  const arrived: Arrived[] = [];
  server.on(
    'stream',
    (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, _flags: number, raw: string[]) => {
      // A reset is something to assert: it shows in `rstCode`.
      stream.on('error', () => {});
      const request: Arrived = { stream, headers, raw, body: () => bodyOf(stream) };
      arrived.push(request);
      Promise.resolve(answer(request)).catch(() => stream.close(2));
    },
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(async () => {
    for (const session of sessions) session.destroy();
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, 'close');
  });
  const { port } = server.address() as AddressInfo;
  return {
    address: { host: '127.0.0.1', port },
    protocol: tls ? 'https' : 'http',
    caFile: tls?.caFile,
    authority: `127.0.0.1:${port}`,
    arrived,
    sessions,
    connections: () => accepted,
  };
}

/** Answers with these fields and this body once the request is whole. */
export function respond(body = '', fields: Record<string, string | number> = {}): Answering {
  return async ({ stream, ...request }) => {
    await request.body();
    stream.respond({ ':status': 200, ...fields });
    stream.end(body);
  };
}

async function bodyOf(stream: ServerHttp2Stream): Promise<{ text: string; trailers: IncomingHttpHeaders }> {
  let trailers: IncomingHttpHeaders = {};
  stream.on('trailers', (came: IncomingHttpHeaders) => {
    trailers = came;
  });
  const pieces: Buffer[] = [];
  for await (const piece of stream) pieces.push(piece as Buffer);
  return { text: Buffer.concat(pieces).toString('latin1'), trailers };
}
