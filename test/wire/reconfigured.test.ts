import { connect as connectHttp2 } from 'node:http2';
import { describe, expect, it, onTestFinished } from 'vitest';
import { until } from '../support/until.ts';
import { volume } from '../support/volume.ts';
import { FakeBearer, FIRST, renewable, SECOND } from './fake-bearer.ts';
import { HTTP2, respond, startHttp2 } from './http2-upstream/node-upstream.ts';
import { answer, get, message, ok, post } from './messages.ts';
import { expectProblem } from './problem.ts';
import { answering, inTurn, startUpstream } from './raw-upstream.ts';
import { forwardTo, routeTo, startSidecar } from './sidecar.ts';

const OTHER = { match: { pathPrefix: '/other' }, name: 'other' };

describe('after a reload, a request in flight', () => {
  it('finishes with the route that it began with, which the next request no longer has', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();
    client.send(post('/', 'body'));
    const arrived = await upstream.request();

    const before = await sidecar.reconfigure({ upstream, route: OTHER });
    let unused = false;
    const waited = before.whenUnused().then(() => {
      unused = true;
    });
    const next = await sidecar.connect();
    expectProblem(await next.send(get('/')).response(), 'route_not_found');
    expect(unused).toBe(false);
    arrived.answer(ok('as it began'));

    expect((await client.response()).body).toBe('as it began');
    await waited;
    // Its connection is in no pool that anybody asks.
    expect(await arrived.connection.closed()).toBe('end');
  });

  it('that waits for its token is sent once there is one', async () => {
    const token = Promise.withResolvers<string>();
    const bearer = new FakeBearer({ held: undefined, obtain: () => token.promise });
    const upstream = await startUpstream(answering(ok('late')));
    const sidecar = await startSidecar({ upstream, bearer });
    const client = await sidecar.connect();
    client.send(get('/'));
    await until(() => bearer.obtained === 1);

    await sidecar.reconfigure({ upstream, route: OTHER });
    token.resolve(FIRST);

    expect((await client.response()).body).toBe('late');
    expect(upstream.requests[0]?.head.values('authorization')).toEqual([FIRST]);
  });

  it('is sent again after a 401 with another token of the credential that it began with', async () => {
    const upstream = await startUpstream(
      inTurn(
        () => {},
        (arrived) => arrived.answer(ok('replayed')),
      ),
    );
    const sidecar = await startSidecar({ upstream, bearer: renewable() });
    const client = await sidecar.connect();
    client.send(get('/'));
    const arrived = await upstream.request();

    await sidecar.reconfigure({ upstream, bearer: new FakeBearer({ held: 'Bearer another' }) });
    arrived.answer(answer(401));

    expect((await client.response()).body).toBe('replayed');
    expect(upstream.requests[1]?.head.values('authorization')).toEqual([SECOND]);
  });

  it('still counts towards the limit', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();
    client.send(get('/'));
    const arrived = await upstream.request();

    await sidecar.reconfigure({ upstream, limits: { maxInFlight: 1 } });
    expectProblem(await sidecar.exchange(get('/')), 'overloaded');
    arrived.answer(ok());
    await client.response();
    client.send(get('/'));
    (await upstream.request()).answer(ok('room'));

    expect((await client.response()).body).toBe('room');
  });
});

describe('after a reload, an open connection of an app', () => {
  it('has its next request served by the new configuration', async () => {
    const upstream = await startUpstream(answering(ok('passed')));
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();
    expect((await client.send(post('/', 'four')).response()).body).toBe('passed');

    const bearer = new FakeBearer({ held: SECOND });
    await sidecar.reconfigure({ upstream, bearer, limits: { requestBodyBytes: 3 } });

    expect((await client.send(get('/')).response()).status).toBe(200);
    expect(upstream.requests[1]?.head.values('authorization')).toEqual([SECOND]);
    expectProblem(await client.send(post('/', 'four')).response(), 'request_too_large');
  });
});

describe('after a reload, a connection to an upstream', () => {
  it('serves an unchanged route as before, whatever else changed', async () => {
    const upstream = await startUpstream(answering(ok()));
    const sidecar = await startSidecar({ upstream });
    await sidecar.exchange(get('/1'));

    const bearer = new FakeBearer({ held: SECOND });
    const route = { match: { pathPrefix: '/v1' }, stripPrefix: true, retryOn401: false };
    await sidecar.reconfigure({ upstream, bearer, route });
    await sidecar.exchange(get('/v1/2'));

    expect(upstream.targets).toEqual(['/1', '/2']);
    expect(upstream.requests[1]?.head.values('authorization')).toEqual([SECOND]);
    expect(upstream.connections).toHaveLength(1);
  });

  it('serves an unchanged route over HTTP/2 too', async () => {
    const upstream = await startHttp2(respond('h2'));
    const route = { protocol: HTTP2 };
    const sidecar = await startSidecar({ upstream, route });
    await sidecar.exchange(get('/1'));

    await sidecar.reconfigure({ upstream, route: { ...route, whenTokenUnavailable: 'passthrough' } });
    await sidecar.exchange(get('/2'));

    expect(upstream.arrived).toHaveLength(2);
    expect(upstream.connections()).toBe(1);
  });

  it.each([
    ['its timeouts', { timeouts: { connectMs: 9_999 } }],
    ['its name', { name: 'renamed' }],
    ['its protocol', { protocol: 'http1' as const }],
  ])('is closed if the route differs in %s', async (_, route) => {
    const upstream = await startUpstream(answering(ok()));
    const sidecar = await startSidecar({ upstream });
    await sidecar.exchange(get('/1'));

    await sidecar.reconfigure({ upstream, route });

    expect(await upstream.requests[0]?.connection.closed()).toBe('end');
    expect((await sidecar.exchange(get('/2'))).status).toBe(200);
    expect(upstream.connections).toHaveLength(2);
  });

  it('is kept and used if the new configuration is invalid', async () => {
    const upstream = await startUpstream(answering(ok()));
    const sidecar = await startSidecar({ upstream });
    await sidecar.exchange(get('/1'));

    const routes = [routeTo(upstream), routeTo(upstream, { ...OTHER, credential: 'unknown' })];
    await expect(sidecar.reconfigure({ routes })).rejects.toThrow('credential unknown is not configured');
    expect((await sidecar.exchange(get('/2'))).status).toBe(200);
    await sidecar.reconfigure({ upstream });
    expect((await sidecar.exchange(get('/3'))).status).toBe(200);

    expect(upstream.connections).toHaveLength(1);
  });

  it('is kept and used through many changes', async () => {
    const upstream = await startUpstream(answering(ok()));
    const sidecar = await startSidecar({ upstream });
    for (let count = 0; count < 20; count++) {
      expect((await sidecar.exchange(get('/'))).status).toBe(200);
      await sidecar.reconfigure({ upstream, limits: { headerCount: 50 + count } });
    }
    expect(upstream.connections).toHaveLength(1);
  });
});

describe('after a reload, the forward proxy', () => {
  function absolute(authority: string, path = '/'): string {
    return message(`GET http://${authority}${path} HTTP/1.1`, [`Host: ${authority}`]);
  }

  it('keeps connections to hosts that are still listed', async () => {
    const upstream = await startUpstream(answering(ok()));
    const forwardProxy = forwardTo(upstream);
    const sidecar = await startSidecar({ forwardProxy });
    await sidecar.exchange(absolute(upstream.authority));

    const [entry] = forwardProxy.allow;
    if (entry === undefined) throw new Error('the list is empty');
    const first = { ...entry, host: 'first.test' };
    const bearer = new FakeBearer({ held: SECOND });
    const allow = [first, { ...entry, retryOn401: false }];
    await sidecar.reconfigure({ bearer, forwardProxy: { ...forwardProxy, allow } });
    await sidecar.exchange(absolute(upstream.authority));

    expect(upstream.requests.map(({ head }) => head.value('authorization'))).toEqual([FIRST, SECOND]);
    expect(upstream.connections).toHaveLength(1);
  });

  it('closes connections to hosts no longer listed, and refuses requests for them', async () => {
    const upstream = await startUpstream(answering(ok()));
    const forwardProxy = forwardTo(upstream);
    const sidecar = await startSidecar({ forwardProxy });
    const client = await sidecar.connect();
    await client.send(absolute(upstream.authority)).response();

    await sidecar.reconfigure({ forwardProxy: forwardTo(upstream, { host: 'other.test' }) });

    expect(await upstream.requests[0]?.connection.closed()).toBe('end');
    expectProblem(await client.send(absolute(upstream.authority)).response(), 'destination_not_allowed');
    await sidecar.reconfigure({ upstream });
    expectProblem(await client.send(absolute(upstream.authority)).response(), 'destination_not_allowed');
  });
});

const CHANGES = volume(20, 60);

it('no request fails in either version of HTTP while the settings change continuously', async () => {
  const upstream = await startUpstream(answering(ok('served')));
  const second = await startHttp2(respond('served'));
  const routes = [
    routeTo(second, { name: 'second', match: { pathPrefix: '/second' }, protocol: HTTP2 }),
    routeTo(upstream),
  ];
  const sidecar = await startSidecar({ routes });
  const { port } = sidecar.address;
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  onTestFinished(() => session.destroy());
  let served = 0;
  let over = false;

  async function byHttp1(path: string): Promise<void> {
    const client = await sidecar.connect();
    while (!over) {
      const { status, body } = await client.send(post(path, 'x'.repeat(100))).response();
      expect([status, body]).toEqual([200, 'served']);
      served++;
    }
  }
  async function byHttp2(path: string): Promise<void> {
    while (!over) {
      const request = session.request({ ':path': path, ':method': 'POST' });
      const head = new Promise((resolve, reject) => {
        request.on('response', (fields) => resolve(fields[':status']));
        request.on('error', reject);
      });
      request.end('x'.repeat(100));
      let body = '';
      for await (const piece of request) body += String(piece);
      expect([await head, body]).toEqual([200, 'served']);
      served++;
    }
  }
  const clients = ['/', '/second', '/', '/second'].flatMap((path) => [byHttp1(path), byHttp2(path)]);
  for (let count = 0; count < CHANGES; count++) {
    const timeouts = { connectMs: 10_000 + (count % 3) };
    const bearer = new FakeBearer({ held: count % 2 === 0 ? FIRST : SECOND });
    await sidecar.reconfigure({
      routes: routes.map((route) => ({ ...route, timeouts: { ...route.timeouts, ...timeouts } })),
      bearer,
    });
    const target = served + 20;
    await until(() => served >= target);
  }
  over = true;
  await Promise.all(clients);
  await sidecar.idle();
  expect(served).toBeGreaterThanOrEqual(20 * CHANGES);
});
