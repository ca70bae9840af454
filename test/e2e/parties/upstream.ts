/**
 * The upstream of both callers, as a process of its own: `node upstream.ts PROTOCOL MEMORY CERT KEY` prints its port. It answers
 * `ok` to /api/, has much to say to /api/large, and nothing to anything else.
 */

import { readFileSync } from 'node:fs';
import { createServer as createHttp1, type IncomingMessage, type ServerResponse } from 'node:http';
import {
  createServer as createHttp2,
  createSecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
} from 'node:http2';
import { createServer as createHttps } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import { Readable } from 'node:stream';

export type Spoken = 'http1' | 'https1' | 'h2c' | 'h2';

/** What Netty, and so grpc-java, allows: 200 resets in 30 s, then the connection ends for everybody. */
const LIKE_NETTY = { streamResetBurst: 200, streamResetRate: 6 };

const PIECE = Buffer.alloc(64 * 1024);
const PIECES = 128;
const LARGE = Buffer.alloc(PIECES * PIECE.length);

/** A piece at a time: to encrypt it all at once would keep the other caller's answers waiting here. */
function answerHttp1({ url }: IncomingMessage, response: ServerResponse): void {
  response.on('error', () => {});
  if (url === '/api/') response.end('ok');
  else if (url === '/api/large') Readable.from(Array.from({ length: PIECES }, () => PIECE)).pipe(response);
}

/** All at once: a server of Node holds what was not sent yet against its connection. */
function answerHttp2({ url }: Http2ServerRequest, response: Http2ServerResponse): void {
  response.on('error', () => {});
  if (url === '/api/') response.end('ok');
  else if (url === '/api/large') response.end(LARGE);
}

interface Creating {
  /** What one connection of HTTP/2 may hold, in MB; beyond that its server refuses requests with ENHANCE_YOUR_CALM. */
  readonly maxSessionMemory: number;
  readonly cert: Buffer;
  readonly key: Buffer;
}

function create(spoken: Spoken, { maxSessionMemory, ...tls }: Creating): Server {
  const http2 = { ...LIKE_NETTY, maxSessionMemory };
  switch (spoken) {
    case 'http1':
      return createHttp1(answerHttp1);
    case 'https1':
      return createHttps(tls, answerHttp1);
    case 'h2c':
      return createHttp2(http2, answerHttp2);
    case 'h2':
      return createSecureServer({ ...http2, ...tls }, answerHttp2);
  }
}

if (import.meta.main) {
  const [spoken = '', memory, cert = '', key = ''] = process.argv.slice(2);
  const tls = { cert: readFileSync(cert), key: readFileSync(key) };
  const server = create(spoken as Spoken, { maxSessionMemory: Number(memory), ...tls });
  server.on('sessionError', () => {});
  server.listen(0, '127.0.0.1', () => {
    process.stdout.write(`${(server.address() as AddressInfo).port}\n`);
  });
}
