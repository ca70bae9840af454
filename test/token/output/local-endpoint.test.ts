import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { TokenUnavailable, type TokenWaiter } from '../../../src/token/bearer-source.ts';
import { startLocalEndpoint } from '../../../src/token/output/local-endpoint.ts';
import { captureLog } from '../../support/log-capture.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { heldTokens } from './held-tokens.ts';

const MAX_CONNECTIONS = 64;

const MAX_BODY_BYTES = 8192;

const UNREAD_MS = 20_000;

const ASKING = { 'token-sidecar-request': 'true' };
const FORM = { 'content-type': 'application/x-www-form-urlencoded' };
const BASIC = { ...FORM, authorization: 'Basic eDp5' };

interface ResponseBody {
  readonly expires_in?: number;
  readonly error?: string;
  readonly error_description?: string;
}

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: ResponseBody;
}

async function start(scope?: string) {
  const clock = new ManualClock();
  const tokens = heldTokens(clock);
  const { log, lines } = captureLog();
  const endpoint = await startLocalEndpoint({
    listen: { host: '127.0.0.1', port: 0 },
    tokens: [{ source: tokens.source, scope }],
    clock,
    log,
  });
  onTestFinished(() => endpoint.close());

  /** By `node:http`, which sends any field. */
  function ask(
    headers: Readonly<Record<string, string>> = ASKING,
    { method = 'GET', path = '/token/kafka', body }: { method?: string; path?: string; body?: string } = {},
  ): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const asked = httpRequest({ ...endpoint.address, method, path, headers, agent: false }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk) => chunks.push(chunk));
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: JSON.parse(Buffer.concat(chunks).toString()),
          }),
        );
      });
      asked.on('error', reject);
      asked.end(body);
    });
  }

  return { ...tokens, endpoint, clock, ask, lines };
}

it('the local endpoint returns the held token with its remaining lifetime', async () => {
  const { ask, give, clock } = await start('read write');
  give('tok', 90_500);
  const answered = await ask();
  expect(answered.status).toBe(200);
  expect(answered.body).toEqual({
    access_token: 'tok',
    token_type: 'Bearer',
    expires_in: 90,
    scope: 'read write',
  });
  expect(answered.headers).toMatchObject({ 'cache-control': 'no-store', pragma: 'no-cache' });
  await clock.advance(60_000);
  expect((await ask()).body.expires_in).toBe(30);
});

it('the local endpoint gives no lifetime for a token without expiry', async () => {
  const { ask, give } = await start();
  give('tok', Number.POSITIVE_INFINITY);
  expect((await ask()).body).toEqual({ access_token: 'tok', token_type: 'Bearer' });
});

it('the local endpoint never returns an expired token: it waits for another and sends Retry-After', async () => {
  const { ask, give, clock, obtained } = await start();
  give('tok', 1000);
  await clock.advance(1000);
  const answered = await ask();
  expect(answered.status).toBe(503);
  expect(answered.headers['retry-after']).toBe('7');
  expect(answered.body).toEqual({
    error: 'temporarily_unavailable',
    error_description: 'credential kafka: no valid token is held',
  });
  expect(obtained()).toBe(1);
});

it('the local endpoint never returns a token in its last second, as its lifetime would be 0', async () => {
  const { ask, give, clock, obtained } = await start();
  give('tok', 1999);
  expect((await ask()).body.expires_in).toBe(1);
  await clock.advance(1000);
  const answered = await ask();
  expect([answered.status, answered.body.error]).toEqual([503, 'temporarily_unavailable']);
  expect(obtained()).toBe(1);
});

it('a request whose client disconnected stops waiting for a token', async () => {
  const { endpoint, source } = await start();
  const waiting = Promise.withResolvers<AbortSignal | undefined>();
  const gone = Promise.withResolvers<void>();
  const hanging = {
    ...source,
    obtain: (waiter?: TokenWaiter) =>
      new Promise<string>((_, reject) => {
        waiter?.gone?.addEventListener('abort', () => {
          reject(new TokenUnavailable('nobody waits any more', 1000));
          gone.resolve();
        });
        waiting.resolve(waiter?.gone);
      }),
  };
  endpoint.give([{ source: hanging, scope: undefined }]);
  const socket = connect(endpoint.address);
  socket.write('GET /token/kafka HTTP/1.1\r\nHost: 127.0.0.1\r\ntoken-sidecar-request: true\r\n\r\n');
  expect((await waiting.promise)?.aborted).toBe(false);
  socket.destroy();
  await gone.promise;
});

describe('the client credentials grant (RFC 6749 §4.4) at the local endpoint', () => {
  it.each<[string, Record<string, string>, string]>([
    ['by HTTP Basic', BASIC, 'grant_type=client_credentials'],
    [
      'by the form and our own field',
      { ...FORM, ...ASKING },
      'grant_type=client_credentials&client_id=x&client_secret=y',
    ],
    ['with a scope', BASIC, 'grant_type=client_credentials&scope=write'],
    [
      'with a charset',
      { ...BASIC, 'content-type': `${FORM['content-type']}; charset=UTF-8` },
      'grant_type=client_credentials&scope=',
    ],
    ['as large as may be', BASIC, 'grant_type=client_credentials&client_id='.padEnd(MAX_BODY_BYTES, 'x')],
    [
      'with a charset after white space',
      { ...BASIC, 'content-type': `${FORM['content-type']} ; charset=UTF-8` },
      'grant_type=client_credentials',
    ],
  ])('is accepted %s', async (_, headers, body) => {
    const { ask, give } = await start('read write');
    give('tok', 60_000);
    const answered = await ask(headers, { method: 'POST', body });
    expect(answered.body).toMatchObject({ access_token: 'tok', token_type: 'Bearer', expires_in: 60 });
  });

  it.each<[string, Record<string, string>, string, number, string]>([
    ['another grant', BASIC, 'grant_type=password', 400, 'unsupported_grant_type'],
    ['no grant', BASIC, '', 400, 'unsupported_grant_type'],
    ['a grant twice', BASIC, 'grant_type=client_credentials&grant_type=password', 400, 'invalid_request'],
    ['another scope', BASIC, 'grant_type=client_credentials&scope=admin', 400, 'invalid_scope'],
    ['JSON', { ...BASIC, 'content-type': 'application/json' }, '{}', 400, 'invalid_request'],
    [
      'too much',
      BASIC,
      `grant_type=client_credentials&a=${'x'.repeat(MAX_BODY_BYTES)}`,
      413,
      'invalid_request',
    ],
  ])('refuses %s', async (_, headers, body, status, error) => {
    const { ask, give } = await start('read');
    give('tok', 60_000);
    const answered = await ask(headers, { method: 'POST', body });
    expect([answered.status, answered.body.error]).toEqual([status, error]);
    expect(answered.body.error_description).toMatch(/^[a-z].{10,}/);
    expect(JSON.stringify(answered.body)).not.toContain('tok"');
  });
});

describe('the local endpoint refuses a request that may come from another site', () => {
  it.each<[string, Record<string, string>, string, string]>([
    ['without the field', {}, 'GET', 'send the field token-sidecar-request: true'],
    ['with another value of it', { 'token-sidecar-request': '1' }, 'GET', 'send the field'],
    ['by Basic alone, to read', { authorization: 'Basic eDp5' }, 'GET', 'send the field'],
    ['by a form of HTML', FORM, 'POST', 'prove yourself by HTTP Basic'],
    ['by a name of its own', { ...ASKING, host: 'evil.test' }, 'GET', 'by localhost'],
    ['by an address of elsewhere', { ...ASKING, host: '10.0.0.1:15082' }, 'GET', 'by localhost'],
    ['from another origin', { ...ASKING, origin: 'http://evil.test' }, 'GET', 'another site'],
    ['from another site', { ...ASKING, 'sec-fetch-site': 'cross-site' }, 'GET', 'another site'],
    ['through a proxy', { ...ASKING, 'x-forwarded-for': '10.0.0.1' }, 'GET', 'without a proxy'],
    ['through another proxy', { ...ASKING, via: '1.1 proxy' }, 'GET', 'without a proxy'],
    ['through a sidecar', { ...ASKING, 'token-sidecar-hop': '' }, 'GET', 'without a proxy'],
    ['to change something', ASKING, 'DELETE', 'use GET or POST'],
  ])('%s', async (_, headers, method, reason) => {
    const { ask, give } = await start();
    give('tok', 60_000);
    const body = method === 'POST' ? 'grant_type=client_credentials' : undefined;
    const answered = await ask(headers, body === undefined ? { method } : { method, body });
    expect(answered.status).toBe(403);
    expect(answered.body.error_description).toContain(reason);
  });

  it('gives a read-only client no hint about how forms authenticate', async () => {
    const { ask } = await start();
    expect((await ask({})).body.error_description).toBe('send the field token-sidecar-request: true');
  });

  it('lists the existing paths for an unknown path', async () => {
    const { ask } = await start();
    for (const path of ['/token/other', '/', '/token/kafka?a', '/token/__proto__']) {
      const answered = await ask(ASKING, { path });
      expect([answered.status, answered.body]).toEqual([
        404,
        { error: 'invalid_request', error_description: 'not found; there is /token/kafka' },
      ]);
    }
  });
});

it(`the local endpoint allows ${MAX_CONNECTIONS} connections and closes others`, async () => {
  const { endpoint } = await start();
  const sockets = Array.from({ length: MAX_CONNECTIONS + 1 }, () => connect(endpoint.address));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  const closed = await Promise.race(
    sockets.map(
      (socket) => new Promise((resolve) => socket.resume().once('close', () => resolve(socket.bytesRead))),
    ),
  );
  expect(closed).toBe(0);
  expect(sockets.filter((socket) => !socket.destroyed)).toHaveLength(MAX_CONNECTIONS);
});

const ASKED = 'GET /token/kafka HTTP/1.1\r\nHost: 127.0.0.1\r\ntoken-sidecar-request: true\r\n\r\n';

it('the local endpoint closes a connection that pipelines requests', async () => {
  const { endpoint, give } = await start();
  give('t'.repeat(1000), 60_000);
  const socket = connect(endpoint.address).on('error', () => {});
  onTestFinished(() => {
    socket.destroy();
  });
  socket.write(ASKED.repeat(2000));
  await new Promise((resolve) => socket.resume().once('close', resolve));
  expect(socket.bytesRead).toBeLessThan(2000);
});

it('the local endpoint answers sequential requests on one connection', async () => {
  const { endpoint, give } = await start();
  give('tok', 60_000);
  const socket = connect(endpoint.address);
  onTestFinished(() => {
    socket.destroy();
  });
  let read = '';
  socket.on('data', (chunk) => {
    read += String(chunk);
  });
  for (const count of [1, 2, 3]) {
    socket.write(ASKED);
    await expect.poll(() => read.split('"access_token":"tok"').length - 1).toBe(count);
  }
});

it('the local endpoint closes a connection that reads its answer too slowly', async () => {
  const { endpoint, give, clock } = await start();
  // More than the system keeps for the two ends of a connection.
  const length = 32 * 1024 * 1024;
  give('t'.repeat(length), 60_000);
  const socket = connect(endpoint.address).on('error', () => {});
  onTestFinished(() => {
    socket.destroy();
  });
  await once(socket, 'connect');
  socket.write(ASKED);
  // It takes something, so that no timeout for idle connections would run out soon.
  await once(socket, 'data');
  socket.pause();
  await clock.advance(UNREAD_MS);
  // The table of all connections of a machine that is busy takes seconds to read.
  await expect.poll(() => openEnds(endpoint.address.port), { timeout: 15_000, interval: 250 }).toBe(0);
  await new Promise((resolve) => socket.resume().once('close', resolve));
  expect(socket.bytesRead).toBeLessThan(length);
});

/** Connections to a port of loopback whose accepted end is open, by proc(5). */
async function openEnds(port: number): Promise<number> {
  const local = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const lines = (await readFile('/proc/net/tcp', 'utf8')).split('\n').map((line) => line.trim().split(/\s+/));
  return lines.filter(([, own, , state]) => own === local && state === '01').length;
}

it('the local endpoint reports an internal error without details, which are in the log', async () => {
  const { ask, endpoint, source, lines } = await start();
  const broken = { ...source, obtain: () => Promise.reject(new Error('out of order')) };
  endpoint.give([{ source: broken, scope: undefined }]);
  const answered = await ask();
  expect([answered.status, answered.body]).toEqual([
    500,
    { error: 'server_error', error_description: 'an unexpected error' },
  ]);
  expect(lines.join('')).toContain('out of order');
});

const HEAD_OF_GRANT = [
  'POST /token/kafka HTTP/1.1',
  'Host: 127.0.0.1',
  'Authorization: Basic eDp5',
  'Content-Type: application/x-www-form-urlencoded',
  'Content-Length: 100',
].join('\r\n');

it('a client that disconnects amid its body is not logged as a fault', async () => {
  const { ask, endpoint, give, lines } = await start();
  give('tok', 60_000);
  const socket = connect(endpoint.address);
  socket.write(`${HEAD_OF_GRANT}\r\nExpect: 100-continue\r\n\r\ngrant`);
  // Its body is waited for from here on.
  await once(socket, 'data');
  socket.resetAndDestroy();
  await expect.poll(() => openEnds(endpoint.address.port), { timeout: 50_000, interval: 50 }).toBe(0);
  expect((await ask()).status).toBe(200);
  expect(lines).toEqual([]);
});

it('the local endpoint closes a connection whose request does not end', { timeout: 20_000 }, async () => {
  const { endpoint, give } = await start();
  give('tok', 60_000);
  const slow = ['', 'GET /token/kafka HTTP/1.1\r\nHost: 127.0.0.1\r\n', `${HEAD_OF_GRANT}\r\n\r\ngrant`].map(
    (sent) => {
      const socket = connect(endpoint.address).on('error', () => {});
      onTestFinished(() => {
        socket.destroy();
      });
      socket.write(sent);
      return new Promise<string>((resolve) => {
        let read = '';
        socket.on('data', (chunk) => {
          read += String(chunk);
        });
        socket.once('close', () => resolve(read));
      });
    },
  );
  for (const read of await Promise.all(slow)) {
    expect(read).toMatch(/^HTTP\/1\.1 408 /);
    expect(read).not.toContain('tok');
  }
});

it('the local endpoint allows 8 KiB of fields', async () => {
  const { ask, endpoint, give } = await start();
  give('tok', 60_000);
  expect((await ask({ ...ASKING, 'x-long': 'x'.repeat(7 * 1024) })).status).toBe(200);
  const socket = connect(endpoint.address);
  socket.write(`GET /token/kafka HTTP/1.1\r\nHost: 127.0.0.1\r\nx-long: ${'x'.repeat(9 * 1024)}\r\n\r\n`);
  const [read] = await once(socket, 'data');
  socket.destroy();
  expect(String(read)).toMatch(/^HTTP\/1\.1 431 /);
});

it('the local endpoint uses only the latest configuration', async () => {
  const { ask, give, clock, endpoint } = await start();
  give('of the first', 90_500);
  const next = heldTokens(clock);
  next.give('of the second', 90_500);
  endpoint.give([{ source: { ...next.source, name: 'crm' }, scope: 'read' }]);
  expect((await ask()).status).toBe(404);
  const answered = await ask(ASKING, { path: '/token/crm' });
  expect(answered.body).toMatchObject({ access_token: 'of the second', scope: 'read' });
});
