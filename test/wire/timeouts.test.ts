import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { ManualClock } from '../support/manual-clock.ts';
import { until } from '../support/until.ts';
import { CHUNKED, chunk, get, LAST_CHUNK, message, ok, request } from './messages.ts';
import { expectProblem } from './problem.ts';
import { answering, startUpstream } from './raw-upstream.ts';
import { startSidecar } from './sidecar.ts';

/** The timeout under test; what must outlast it takes three times as long, on a clock that is moved by hand. */
const SHORT_MS = 150;
const LONGER_MS = 3 * SHORT_MS;

describe('an upstream that takes too long', () => {
  it('to accept a connection is answered 504', async () => {
    // TCP is accepted, the TLS handshake never begins.
    const upstream = await startUpstream(undefined, 'plain');
    const route = { upstream: { protocol: 'https' }, timeouts: { connectMs: SHORT_MS } } as const;
    const sidecar = await startSidecar({ upstream, route });

    expectProblem(await sidecar.exchange(get('/')), 'upstream_timeout');

    await upstream.connections[0]?.closed();
  });

  it.each([
    ['a request without a body', get('/')],
    ['a request with a body', request('POST', '/', [], 'body')],
    ['an upgrade', get('/', 'Connection: Upgrade', 'Upgrade: raw')],
  ])('to answer %s gets 504, and its connection is closed', async (_, bytes) => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream, route: { timeouts: { responseMs: SHORT_MS } } });

    expectProblem(await sidecar.exchange(bytes), 'upstream_timeout');

    await upstream.connections[0]?.closed();
    expect(upstream.requests).toHaveLength(1);
  });

  it('is timed from the last byte of the request, not from its first', async () => {
    const clock = new ManualClock();
    const upstream = await startUpstream(answering(ok('in time')));
    const sidecar = await startSidecar({ upstream, clock, route: { timeouts: { responseMs: SHORT_MS } } });
    const client = await sidecar.connect();
    client.send(`${request('POST', '/', ['Content-Length: 10'])}hello`);
    await upstream.request();

    await clock.advance(LONGER_MS);
    client.send('world');

    expect(await client.response()).toMatchObject({ status: 200, body: 'in time' });
  });

  it('amid its answer has it cut', async () => {
    const upstream = await startUpstream((arrived) => {
      arrived.answer(message('HTTP/1.1 200 OK', [CHUNKED], chunk('hello')));
    });
    const sidecar = await startSidecar({ upstream, route: { timeouts: { idleMs: SHORT_MS } } });
    const client = await sidecar.connect();

    client.send(get('/'));

    await client.closed();
    expect(client.received.text).toContain('hello');
    expect(client.received.text).not.toMatch(/\r\n0\r\n/);
    await upstream.connections[0]?.closed();
    await sidecar.idle();
  });
});

describe('an app that takes too long', () => {
  it('amid its upload gets 408, and the upstream does not take the body for complete', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({
      upstream,
      route: { timeouts: { idleMs: SHORT_MS } },
    });
    const client = await sidecar.connect();

    client.send(request('POST', '/', [CHUNKED]) + chunk('hello'));
    const arrived = await upstream.request();

    const answer = await client.response();
    expectProblem(answer, 'request_timeout');
    expect(answer.head.value('connection')).toBe('close');
    await client.closed();
    await expect(arrived.body()).rejects.toThrow();
    await sidecar.idle();
  });

  it('with its head is refused, however it spreads its bytes', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream, limits: { headerTimeoutMs: SHORT_MS } });
    const client = await sidecar.connect();
    const closed = client.closed();
    let open = true;
    void closed.then(() => {
      open = false;
    });

    client.send('GET / HTTP/1.1\r\nHost: app.test\r\nX: ');
    while (open) {
      client.send('y');
      await delay(SHORT_MS / 10);
    }

    expectProblem(await client.response(), 'bad_request');
    expect(upstream.text).toBe('');
  });

  it('with its second head is refused as well', async () => {
    const upstream = await startUpstream(answering(ok('first')));
    const sidecar = await startSidecar({ upstream, limits: { headerTimeoutMs: SHORT_MS } });
    const client = await sidecar.connect();
    await client.send(get('/')).response();

    client.send('GET /second HTTP/1.1\r\n');

    expectProblem(await client.response(), 'bad_request');
    await client.closed();
    expect(upstream.targets).toEqual(['/']);
  });

  it('with its first byte is disconnected', async () => {
    const upstream = await startUpstream();
    const limits = { headerTimeoutMs: SHORT_MS, keepAliveTimeoutMs: SHORT_MS };
    const sidecar = await startSidecar({ upstream, limits });

    await (await sidecar.connect()).closed();
  });

  it('with its next request is disconnected without an answer', async () => {
    const upstream = await startUpstream(answering(ok('first')));
    const sidecar = await startSidecar({ upstream, limits: { keepAliveTimeoutMs: SHORT_MS } });
    const client = await sidecar.connect();
    await client.send(get('/')).response();

    expect(await client.closed()).toBe('end');
    expect(client.received.text.match(/HTTP\/1\.1/g)).toHaveLength(1);
  });
});

describe('no timeout cuts', () => {
  it('a request that goes on for a long time', async () => {
    const clock = new ManualClock();
    const upstream = await startUpstream(async (arrived) => {
      await arrived.body();
      await clock.advance(LONGER_MS);
      arrived.answer(ok('at last'));
    });
    const limits = { headerTimeoutMs: SHORT_MS, keepAliveTimeoutMs: SHORT_MS };
    const route = { timeouts: { connectMs: SHORT_MS } };
    const sidecar = await startSidecar({ upstream, clock, limits, route });
    const client = await sidecar.connect();

    client.send(request('POST', '/', [CHUNKED]) + chunk('hello'));
    await upstream.request();
    await clock.advance(LONGER_MS);
    client.send(LAST_CHUNK);

    expect((await client.response()).body).toBe('at last');
  });

  it('a body or tunnel in which bytes move in only one direction', async () => {
    const clock = new ManualClock();
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream, clock, route: { timeouts: { idleMs: SHORT_MS } } });
    const [reading, sending, tunnelled] = await Promise.all([
      sidecar.connect(),
      sidecar.connect(),
      sidecar.connect(),
    ]);
    reading.send(get('/'));
    const download = await upstream.request();
    download.answer(message('HTTP/1.1 200 OK', [CHUNKED]));
    sending.send(request('POST', '/', [CHUNKED]));
    const upload = await upstream.request();
    tunnelled.send(get('/', 'Connection: Upgrade', 'Upgrade: raw'));
    const tunnel = await upstream.request();
    tunnel.answer(message('HTTP/1.1 101 Switching Protocols', ['Connection: Upgrade', 'Upgrade: raw']));
    await tunnelled.head();

    const moved = () =>
      [reading.received, upload.connection.received, tunnel.connection.received].map(({ count }) => count);
    for (let times = 0; times < 5; times++) {
      const before = moved();
      download.answer(chunk('down'));
      sending.send(chunk('up'));
      tunnelled.send('through');
      await until(() => moved().every((count, index) => count > Number(before[index])));
      await clock.advance(SHORT_MS - 1);
    }
    download.answer(LAST_CHUNK);
    sending.send(LAST_CHUNK);
    tunnelled.send('the end');

    expect((await reading.response()).body).toMatch(/^(down)+$/);
    expect((await upload.body()).text).toMatch(/^(up)+$/);
    upload.answer(ok('done'));
    expect((await sending.response()).body).toBe('done');
    await tunnel.connection.received.contains('the end');
    tunnelled.end();
    tunnel.connection.end();
  });
});

it('a tunnel in which nothing moves is closed on both sides', async () => {
  const upstream = await startUpstream();
  const sidecar = await startSidecar({ upstream, route: { timeouts: { idleMs: SHORT_MS } } });
  const client = await sidecar.connect();
  client.send(get('/', 'Connection: Upgrade', 'Upgrade: raw'));
  const arrived = await upstream.request();
  arrived.answer(message('HTTP/1.1 101 Switching Protocols', ['Connection: Upgrade', 'Upgrade: raw']));

  await Promise.all([client.closed(), arrived.connection.closed()]);
  await sidecar.idle();
});
