import { describe, expect, it } from 'vitest';
import { renewable, withoutToken } from './fake-bearer.ts';
import { connectHttp2 } from './http2/raw-http2-client.ts';
import { answer, CHUNKED, chunk, get, message, ok, post } from './messages.ts';
import { answering, inTurn, startUpstream } from './raw-upstream.ts';
import { forwardTo, type Sidecar, startSidecar } from './sidecar.ts';

const ALL = { requests: 'all', sample: 1 } as const;

interface AccessLine {
  readonly requestId: string;
  readonly path: string;
  readonly status: number;
  readonly durationMs: number;
  readonly upstreamMs?: number;
}

/** The lines of the access log, once nothing is in flight. */
async function accessLines(sidecar: Sidecar): Promise<AccessLine[]> {
  await sidecar.idle();
  return sidecar.logLines
    .map((line) => JSON.parse(line) as AccessLine & { msg: string })
    .filter(({ msg }) => msg === 'request');
}

describe('the access log has of a request', () => {
  it('where it went, how it ended and how long it took, and nothing of its query and fields', async () => {
    const upstream = await startUpstream(answering(ok('x')));
    const sidecar = await startSidecar({ upstream, accessLog: ALL });

    await sidecar.exchange(get('/orders/7?key=secret-query', 'Cookie: secret-cookie', 'X-Request-Id: mine'));

    const lines = await accessLines(sidecar);
    expect(lines).toEqual([
      {
        level: 'info',
        time: expect.any(String),
        msg: 'request',
        requestId: 'mine',
        method: 'GET',
        path: '/orders/7',
        protocol: 'http1',
        route: 'api',
        upstream: upstream.authority,
        upstreamProtocol: 'http1',
        status: 200,
        sent: 1,
        durationMs: expect.any(Number),
        upstreamMs: expect.any(Number),
      },
    ]);
    expect(lines[0]?.durationMs).toBeGreaterThanOrEqual(lines[0]?.upstreamMs ?? Number.NaN);
    expect(JSON.stringify(lines)).not.toContain('secret');
  });

  it('an id that is made, by which the upstream knows it, too', async () => {
    const upstream = await startUpstream(answering(ok('x')));
    const sidecar = await startSidecar({ upstream, accessLog: ALL });

    await sidecar.exchange(get('/'));

    const { head } = await upstream.request();
    const [line] = await accessLines(sidecar);
    expect(head.values('x-request-id')).toEqual([line?.requestId]);
  });

  it.each([
    ['alone', []],
    ['of its own id', ['X-Request-Id: for-this-hop']],
  ])('the id that the upstream got, where the app names such fields away: %s', async (_, own) => {
    const upstream = await startUpstream(answering(ok('x')));
    const sidecar = await startSidecar({ upstream, accessLog: ALL });

    await sidecar.exchange(get('/', 'Connection: X-Request-Id, x-other', 'X-Other: 1', ...own));

    const { head } = await upstream.request();
    const [line] = await accessLines(sidecar);
    expect(head.values('x-request-id')).toEqual([line?.requestId]);
    expect(head.values('x-other')).toEqual([]);
  });

  it('that a drain whose time was up has cut it', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream, accessLog: ALL });
    const [waiting, reading] = await Promise.all([sidecar.connect(), sidecar.connect()]);
    waiting.send(get('/waiting'));
    await upstream.request();
    reading.send(get('/reading'));
    const second = await upstream.request();
    second.answer(message('HTTP/1.1 200 OK', [CHUNKED], chunk('half ')));
    await reading.received.contains('half ');

    await sidecar.proxy.drain(0);

    const lines = await accessLines(sidecar);
    expect(lines.toSorted((one, other) => one.status - other.status)).toMatchObject([
      { path: '/reading', status: 200, error: 'draining' },
      { path: '/waiting', status: 499, error: 'draining' },
    ]);
    expect(await sidecar.metric('proxy_errors_total', { route: 'api', error: 'draining' })).toBe(2);
  });

  it('the trace of the app, which the upstream gets as it came', async () => {
    const upstream = await startUpstream(answering(ok('x')));
    const sidecar = await startSidecar({ upstream, accessLog: ALL });
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00';

    await sidecar.exchange(get('/', `traceparent: ${traceparent}`, 'tracestate: vendor=1'));

    const { head } = await upstream.request();
    expect(head.values('traceparent')).toEqual([traceparent]);
    expect(head.values('tracestate')).toEqual(['vendor=1']);
    expect(await accessLines(sidecar)).toMatchObject([
      { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' },
    ]);
  });

  it('how often it was sent, under one id', async () => {
    const upstream = await startUpstream(inTurn(answering(answer(401)), answering(ok('x'))));
    const sidecar = await startSidecar({ upstream, bearer: renewable(), accessLog: ALL });

    await sidecar.exchange(post('/', 'body'));

    const ids = upstream.requests.map(({ head }) => head.value('x-request-id'));
    expect(await accessLines(sidecar)).toMatchObject([{ requestId: ids[0], status: 200, sent: 2 }]);
    expect(ids[1]).toBe(ids[0]);
  });

  it('the version of HTTP by which it came', async () => {
    const upstream = await startUpstream(answering(ok('x')));
    const sidecar = await startSidecar({ upstream, accessLog: ALL });
    const client = await connectHttp2(sidecar);

    await client.answer(client.get('/over-2?a=b'));

    expect(await accessLines(sidecar)).toMatchObject([{ protocol: 'h2', path: '/over-2', status: 200 }]);
  });

  it('the path alone, where the target names the host', async () => {
    const upstream = await startUpstream(answering(ok('x')));
    const sidecar = await startSidecar({ forwardProxy: forwardTo(upstream), accessLog: ALL });

    const target = `http://${upstream.authority}/whole?key=secret`;
    await sidecar.exchange(message(`GET ${target} HTTP/1.1`, [`Host: ${upstream.authority}`]));

    expect(await accessLines(sidecar)).toMatchObject([{ path: '/whole', upstream: upstream.authority }]);
  });

  it('that the app left before it was answered', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream, accessLog: ALL });
    const client = await sidecar.connect();
    client.send(get('/'));
    await upstream.request();

    client.destroy();

    expect(await accessLines(sidecar)).toMatchObject([{ status: 499, sent: 1 }]);
  });

  it('that its answer stopped amid, and was cut', async () => {
    const upstream = await startUpstream(answering(message('HTTP/1.1 200 OK', [CHUNKED], chunk('half '))));
    const sidecar = await startSidecar({ upstream, accessLog: ALL, route: { timeouts: { idleMs: 150 } } });
    const client = await sidecar.connect();

    await client.send(get('/')).closed();

    expect(await accessLines(sidecar)).toMatchObject([{ status: 200, error: 'upstream_timeout' }]);
    expect(await sidecar.metric('proxy_errors_total', { route: 'api', error: 'upstream_timeout' })).toBe(1);
  });

  it('that its answer was cut because the app read no more of it', async () => {
    const body = 'x'.repeat(32 * 1024 * 1024);
    const upstream = await startUpstream(answering(ok(body)));
    const sidecar = await startSidecar({ upstream, accessLog: ALL, route: { timeouts: { idleMs: 300 } } });
    const client = await sidecar.connect();

    client.send(get('/'));
    client.socket.pause();
    await upstream.request();

    expect(await accessLines(sidecar)).toMatchObject([{ status: 200, error: 'request_timeout' }]);
    expect(
      await sidecar.metric('proxy_errors_total', { route: 'api', error: 'upstream_timeout' }),
    ).toBeFalsy();
  });

  it('why the proxy refused it', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream, bearer: withoutToken(), accessLog: ALL });

    const refused = await sidecar.exchange(get('/'));

    expect(await accessLines(sidecar)).toMatchObject([
      {
        requestId: refused.head.value('x-request-id'),
        status: 503,
        error: 'token_unavailable',
        sent: 0,
      },
    ]);
  });

  it('that no route matched', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({
      upstream,
      route: { match: { pathPrefix: '/api' } },
      accessLog: ALL,
    });

    await sidecar.exchange(get('/other'));

    const [line] = await accessLines(sidecar);
    expect(line).toMatchObject({ status: 404, error: 'route_not_found', path: '/other' });
    expect(line).not.toHaveProperty('route');
  });
});

describe('a line is left', () => {
  it('by what failed alone, where that is asked for', async () => {
    const upstream = await startUpstream(
      inTurn(answering(ok('x')), answering(answer(404)), answering(answer(500)), answering(ok('x'))),
    );
    const sidecar = await startSidecar({ upstream, accessLog: { requests: 'errors', sample: 1 } });
    const client = await sidecar.connect();

    for (const path of ['/1', '/2', '/3', '/4']) await client.send(get(path)).response();

    expect((await accessLines(sidecar)).map(({ path }) => path)).toEqual(['/2', '/3']);
  });

  it('by what failed and a part of the rest, where that is asked for', async () => {
    const upstream = await startUpstream(inTurn(answering(answer(404)), answering(ok('x'))));
    const sidecar = await startSidecar({ upstream, accessLog: { requests: 'all', sample: 0 } });
    const client = await sidecar.connect();

    for (const path of ['/1', '/2']) await client.send(get(path)).response();

    expect((await accessLines(sidecar)).map(({ path }) => path)).toEqual(['/1']);
  });

  it('by none, unless it is asked for', async () => {
    const upstream = await startUpstream(answering(ok('x')));
    const sidecar = await startSidecar({ upstream });

    await sidecar.exchange(get('/'));

    expect(await accessLines(sidecar)).toEqual([]);
  });

  it('by requests from then on, where another configuration asks for it', async () => {
    const upstream = await startUpstream(answering(ok('x')));
    const sidecar = await startSidecar({ upstream });
    await sidecar.exchange(get('/before'));

    await sidecar.reconfigure({ upstream, accessLog: ALL });
    await sidecar.exchange(get('/after'));

    expect((await accessLines(sidecar)).map(({ path }) => path)).toEqual(['/after']);
  });
});
