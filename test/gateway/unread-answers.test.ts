/** What a caller that reads no answers costs those whose requests go to the same HTTP/2 upstream. */

import { once } from 'node:events';
import { createServer, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { MOST_UNREAD_BYTES } from '../../src/proxy/upstream/http2/limits.ts';
import { until } from '../support/until.ts';
import { callers, startGateway, WEB_ENTRY, web } from './running-gateway.ts';

const other = callers.issue('other', 'spiffe://cluster.local/ns/shop/sa/other');
const OTHER_ENTRY = {
  name: 'other',
  match: { spiffe: 'spiffe://cluster.local/ns/shop/sa/other' },
  allowedRoutes: ['api'],
};

/** With 256 KiB each they fill what one upstream connection may have unread, and its window after that. */
const FILLING = 40;
const WINDOW = 2 ** 20;
/** With so many connections full, none stands aside for a further one. */
const ROUNDS = 4;

const LARGE = Buffer.alloc(512 * 1024);

it('answers that one caller does not read hold up no other caller', async () => {
  const sessions: ServerHttp2Session[] = [];
  const upstream = createServer({ maxSessionMemory: 1000 }, (request, response) => {
    response.on('error', () => {});
    response.end(request.url === '/api/large' ? LARGE : 'ok');
  });
  upstream.on('session', (session) => void sessions.push(session));
  upstream.listen(0, '127.0.0.1');
  await once(upstream, 'listening');
  onTestFinished(() => {
    for (const session of sessions) session.destroy();
    upstream.close();
  });
  const url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
  const routes = [{ name: 'api', match: { pathPrefix: '/api/' }, upstream: url, protocol: 'h2c' }];
  const gateway = await startGateway({ callers: [WEB_ENTRY, OTHER_ENTRY], file: { routes } });

  const full = () => sessions.filter(({ socket }) => socket.bytesWritten > MOST_UNREAD_BYTES + WINDOW).length;
  for (let round = 1; round <= ROUNDS; round++) {
    const session = await gateway.http2(web);
    for (let count = 0; count < FILLING; count++) {
      session.request({ ':path': '/api/large' }).on('error', () => {});
    }
    await until(() => full() >= round);
  }

  expect(await gateway.get(other)).toMatchObject({ status: 200, body: 'ok' });
});
