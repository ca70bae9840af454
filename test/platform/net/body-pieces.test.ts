/** In how many pieces a body may come. Everything goes over real sockets, in chunks and in records of TLS. */

import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { expect, it, onTestFinished } from 'vitest';
import { BoundedRequest } from '../../../src/platform/net/body-pieces.ts';
import { readBody } from '../../../src/platform/net/listen.ts';
import { selfSigned } from '../../wire/certificate.ts';

const certificate = selfSigned('127.0.0.1');

/** What came of the body of the one request that these texts are. */
async function bodyOf(server: Server, texts: readonly string[], isWhole: boolean): Promise<unknown> {
  const read = new Promise((resolve) => {
    server.on('request', async (request, response) => {
      resolve(await readBody(request, 2 ** 24));
      response.end();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const to = { port, host: '127.0.0.1' };
  const isTls = server.listenerCount('secureConnection') > 0;
  const socket: Socket = isTls
    ? connectTls({ ...to, ca: certificate.cert })
    : connect({ ...to, noDelay: true });
  onTestFinished(() => {
    socket.destroy();
    server.close();
  });
  socket.on('error', () => {});
  await once(socket, isTls ? 'secureConnect' : 'connect');
  // One by one: what waits to be written would become one record.
  for (const text of texts) await new Promise((resolve) => socket.write(text, resolve));
  const body = await read;
  if (!isWhole) await once(socket.resume(), 'close');
  return Buffer.isBuffer(body) ? body.length : body;
}

const HEAD = 'POST / HTTP/1.1\r\nHost: a\r\n';

const inChunks = (count: number, bytes: number): string[] => [
  `${HEAD}Transfer-Encoding: chunked\r\n\r\n${`${bytes.toString(16)}\r\n${'a'.repeat(bytes)}\r\n`.repeat(count)}0\r\n\r\n`,
];

const inRecords = (count: number): string[] => [
  `${HEAD}Content-Length: ${count}\r\n\r\n`,
  ...Array.from({ length: count }, () => 'a'),
];

const plain = () => createServer({ IncomingMessage: BoundedRequest });
const tls = () => createTlsServer({ ...certificate, IncomingMessage: BoundedRequest } as object);

it.each<[string, () => Server, readonly string[], number]>([
  ['64 chunks of an octet', plain, inChunks(64, 1), 64],
  ['64 records of an octet', tls, inRecords(64), 64],
  ['4096 chunks of 256 octets', plain, inChunks(4096, 256), 2 ** 20],
  ['256 chunks of 64 KiB', plain, inChunks(256, 2 ** 16), 2 ** 24],
])('a body of %s comes whole', async (_, create, texts, bytes) => {
  expect(await bodyOf(create(), texts, true)).toBe(bytes);
});

it.each<[string, () => Server, readonly string[]]>([
  ['65 chunks of an octet', plain, inChunks(65, 1)],
  ['200 records of an octet', tls, inRecords(200)],
  ['200 chunks of 100 octets', plain, inChunks(200, 100)],
])('a body of %s ends the connection', async (_, create, texts) => {
  expect(await bodyOf(create(), texts, false)).toBe('aborted');
});

it('a body that nobody reads is kept in no more pieces than it may have', async () => {
  const server = plain();
  const asked = once(server, 'request') as Promise<[IncomingMessage]>;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  onTestFinished(() => {
    socket.destroy();
    server.close();
  });
  socket.on('error', () => {}).write(inChunks(10_000, 1)[0] as string);
  const [request] = await asked;
  await once(socket.resume(), 'close');
  expect(request.readableLength).toBeLessThanOrEqual(64);
});

it('after such a body the next requests of anybody have theirs', async () => {
  const lengths: (number | string)[] = [];
  const server = plain().on('request', async (request, response) => {
    const body = await readBody(request, 2 ** 24);
    lengths.push(Buffer.isBuffer(body) ? body.length : body);
    response.end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  for (const chunks of [65, 3, 10_000, 5, 7]) {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    socket.on('error', () => {}).write(inChunks(chunks, 1)[0] as string);
    await Promise.race([once(socket, 'data').catch(() => {}), once(socket, 'close')]);
    socket.destroy();
  }
  expect(lengths).toEqual(['aborted', 3, 'aborted', 5, 7]);
});
