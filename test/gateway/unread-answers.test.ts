/** What a caller that reads no answers costs those whose requests go to the same HTTP/2 upstream. */

import { once } from 'node:events';
import { type ClientHttp2Session, constants, createServer, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { until } from '../support/until.ts';
import { callers, startGateway, WEB_ENTRY, web } from './running-gateway.ts';

const MAX_SATURATED_CONNECTIONS = 3;

const MAX_UNREAD_BYTES = 8 * 1024 * 1024;
/** Resets after which a connection upstream carries no further requests. */
const MAX_RESETS = 32;

const other = callers.issue('other', 'spiffe://cluster.local/ns/shop/sa/other');
const OTHER_ENTRY = {
  name: 'other',
  match: { spiffe: 'spiffe://cluster.local/ns/shop/sa/other' },
  allowedRoutes: ['api'],
};

/** With 256 KiB each they fill what one upstream connection may have unread, and its window after that. */
const FILLING = 40;
const WINDOW = 2 ** 20;
const LARGE = Buffer.alloc(512 * 1024);

const ALL_ASIDE = MAX_SATURATED_CONNECTIONS + 1;

/** A gateway before an upstream that refuses nothing, and keeps what it sends until it is read. */
async function start() {
  const sessions: ServerHttp2Session[] = [];
  const slow: string[] = [];
  const upstream = createServer({ maxSessionMemory: 1000 }, (request, response) => {
    response.on('error', () => {});
    if (request.url === '/api/slow') slow.push(request.url);
    else response.end(request.url === '/api/large' ? LARGE : 'ok');
  });
  upstream.on('session', (session) => void sessions.push(session));
  upstream.listen(0, '127.0.0.1');
  await once(upstream, 'listening');
  onTestFinished(() => {
    for (const session of sessions) session.destroy();
    upstream.close();
  });
  const url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
  const match = { pathPrefix: '/api/' };
  const routes = [{ name: 'api', match, upstream: url, protocol: 'h2c', timeouts: { connect: '300ms' } }];
  const gateway = await startGateway({ callers: [WEB_ENTRY, OTHER_ENTRY], file: { routes } });
  return {
    gateway,
    sessions,
    slow,
    /** Has so many connections to the upstream full for good. */
    async fill(round: number): Promise<ClientHttp2Session> {
      const session = await gateway.http2(web);
      for (let count = 0; count < FILLING; count++) {
        session.request({ ':path': '/api/large' }).on('error', () => {});
      }
      const isFull = ({ socket }: ServerHttp2Session) => socket.bytesWritten > MAX_UNREAD_BYTES + WINDOW;
      await until(() => sessions.filter(isFull).length >= round);
      return session;
    },
  };
}

it('answers that one caller does not read hold up no other caller', async () => {
  const { gateway, fill } = await start();
  for (let round = 1; round <= ALL_ASIDE; round++) await fill(round);
  expect(await gateway.get(other)).toMatchObject({ status: 200, body: 'ok' });
});

it('a caller with unread answers gets no further upstream connections by cancelling, until it reads them', async () => {
  const { gateway, sessions, slow, fill } = await start();
  const filling: ClientHttp2Session[] = [];
  for (let round = 1; round <= ALL_ASIDE; round++) {
    const hasty = await gateway.http2(web);
    const cancelled = Array.from({ length: MAX_RESETS }, () => hasty.request({ ':path': '/api/slow' }));
    await until(() => slow.length === round * MAX_RESETS);
    filling.push(await fill(round));
    for (const stream of cancelled) stream.on('error', () => {}).close(constants.NGHTTP2_CANCEL);
    await Promise.all(cancelled.map((stream) => once(stream, 'close')));
  }
  expect(await gateway.get(web)).toMatchObject({ status: 504, code: 'upstream_timeout' });
  expect(sessions).toHaveLength(ALL_ASIDE);
  expect(await gateway.get(other)).toMatchObject({ status: 200, body: 'ok' });
  for (const session of filling) session.destroy();
  await expect.poll(() => gateway.get(web)).toMatchObject({ status: 200, body: 'ok' });
});
