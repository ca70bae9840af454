import { describe, expect, it } from 'vitest';
import { renewable, withoutToken } from './fake-bearer.ts';
import { connectHttp2, requestFields } from './http2/raw-http2-client.ts';
import { answer, CHUNKED, chunk, get, LAST_CHUNK, message, ok, post, request } from './messages.ts';
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

describe('an access log line of a request', () => {
  it('has route, upstream, status and duration, but no query and no fields', async () => {
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
        requestBytes: 0,
        responseBytes: 1,
        durationMs: expect.any(Number),
        upstreamMs: expect.any(Number),
      },
    ]);
    expect(lines[0]?.durationMs).toBeGreaterThanOrEqual(lines[0]?.upstreamMs ?? Number.NaN);
    expect(JSON.stringify(lines)).not.toContain('secret');
  });

  it('has a generated id, which the upstream gets too', async () => {
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
  ])(
    'has the id that the upstream got although the app lists that field in Connection: %s',
    async (_, own) => {
      const upstream = await startUpstream(answering(ok('x')));
      const sidecar = await startSidecar({ upstream, accessLog: ALL });

      await sidecar.exchange(get('/', 'Connection: X-Request-Id, x-other', 'X-Other: 1', ...own));

      const { head } = await upstream.request();
      const [line] = await accessLines(sidecar);
      expect(head.values('x-request-id')).toEqual([line?.requestId]);
      expect(head.values('x-other')).toEqual([]);
    },
  );

  it('says that the request was cut when the drain timed out', async () => {
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

  it('has the trace id of the app, which the upstream gets unchanged', async () => {
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

  it('has the number of attempts, under one id', async () => {
    const upstream = await startUpstream(inTurn(answering(answer(401)), answering(ok('x'))));
    const sidecar = await startSidecar({ upstream, bearer: renewable(), accessLog: ALL });

    await sidecar.exchange(post('/', 'body'));

    const ids = upstream.requests.map(({ head }) => head.value('x-request-id'));
    expect(await accessLines(sidecar)).toMatchObject([{ requestId: ids[0], status: 200, sent: 2 }]);
    expect(ids[1]).toBe(ids[0]);
  });

  it('has the sizes of both bodies without their framing', async () => {
    const chunks = message('HTTP/1.1 200 OK', [CHUNKED], chunk('x'.repeat(20)) + chunk('y') + LAST_CHUNK);
    const upstream = await startUpstream(answering(chunks));
    const sidecar = await startSidecar({ upstream, accessLog: ALL });
    const client = await connectHttp2(sidecar);

    await sidecar.exchange(
      message('POST / HTTP/1.1', ['Host: x', CHUNKED], chunk('1234') + chunk('56') + LAST_CHUNK),
    );
    const stream = client.post('/2');
    client.data(stream, '12345').data(stream, '678', true);
    await client.answer(stream);

    expect(await accessLines(sidecar)).toMatchObject([
      { protocol: 'http1', requestBytes: 6, responseBytes: 21 },
      { protocol: 'h2', requestBytes: 8, responseBytes: 21 },
    ]);
  });

  it('counts the request body once, however often it was sent', async () => {
    const upstream = await startUpstream(inTurn(answering(answer(401, 'refused')), answering(ok('abc'))));
    const sidecar = await startSidecar({ upstream, bearer: renewable(), accessLog: ALL });

    await sidecar.exchange(post('/', 'body'));

    expect(await accessLines(sidecar)).toMatchObject([{ sent: 2, requestBytes: 4, responseBytes: 3 }]);
  });

  it('has the size of the sidecar’s own answer, which is 0 for HEAD', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream, bearer: withoutToken(), accessLog: ALL });
    const client = await connectHttp2(sidecar);

    const refused = await sidecar.exchange(get('/'));
    await sidecar.exchange(request('HEAD', '/'), 'HEAD');
    const { body } = await client.answer(client.get('/'));
    await client.answer(client.request(requestFields('HEAD', '/')));

    expect(await accessLines(sidecar)).toMatchObject([
      { responseBytes: refused.body.length },
      { responseBytes: 0 },
      { responseBytes: body.length },
      { responseBytes: 0 },
    ]);
    expect(refused.body.length).toBeGreaterThan(0);
  });

  it('has size 0 for a 205, which can have no body', async () => {
    const upstream = await startUpstream(
      answering(message('HTTP/1.1 205 Reset Content', [CHUNKED], chunk('x') + LAST_CHUNK)),
    );
    const sidecar = await startSidecar({ upstream, accessLog: ALL });

    await sidecar.exchange(get('/'));

    expect(await accessLines(sidecar)).toMatchObject([{ status: 205, responseBytes: 0 }]);
  });

  it('has the bytes received until the answer was cut', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream, accessLog: ALL });
    const client = await sidecar.connect();
    client.send(message('POST / HTTP/1.1', ['Host: x', 'Content-Length: 100'], 'beginning'));
    const arrived = await upstream.request();
    await arrived.connection.received.contains('beginning');

    client.destroy();

    expect(await accessLines(sidecar)).toMatchObject([{ status: 499, requestBytes: 9, responseBytes: 0 }]);
  });

  it('has the bytes of a CONNECT tunnel in each direction, over HTTP/1.1 and HTTP/2', async () => {
    const upstream = await startUpstream(async () => undefined, 'plain');
    const forwardProxy = forwardTo(upstream, {}, { connect: 'tunnel' });
    const sidecar = await startSidecar({ forwardProxy, accessLog: ALL });
    const inside = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
    const { authority } = upstream;

    const first = await sidecar.connect();
    first.send(`${message(`CONNECT ${authority} HTTP/1.1`, [`Host: ${authority}`])}${inside}`);
    const { connection } = await upstream.request();
    connection.send('12345');
    await first.received.contains('12345');
    first.destroy();
    connection.end();
    await sidecar.idle();
    const second = await connectHttp2(sidecar);
    const stream = second.request([':method', 'CONNECT', ':authority', authority], { endStream: false });
    second.data(stream, inside);
    const arrived = await upstream.request();
    second.data(stream, 'more', true);
    await arrived.connection.received.contains('more');
    arrived.connection.send('123');
    arrived.connection.socket.end();
    await second.answer(stream);

    expect(await accessLines(sidecar)).toMatchObject([
      { method: 'CONNECT', protocol: 'http1', status: 200, requestBytes: inside.length, responseBytes: 5 },
      { method: 'CONNECT', protocol: 'h2', status: 200, requestBytes: inside.length + 4, responseBytes: 3 },
    ]);
  });

  it('has the bytes of both directions after a protocol upgrade', async () => {
    const switching = message('HTTP/1.1 101 Switching Protocols', ['Connection: upgrade', 'Upgrade: chat']);
    const upstream = await startUpstream(answering(`${switching}welcome`));
    const sidecar = await startSidecar({ upstream, accessLog: ALL });
    const client = await sidecar.connect();

    client.send(`${get('/', 'Connection: upgrade', 'Upgrade: chat')}`);
    const { connection } = await upstream.request();
    await client.received.contains('welcome');
    client.send('hi');
    await connection.received.contains('hi');
    client.destroy();
    connection.end();

    expect(await accessLines(sidecar)).toMatchObject([{ status: 101, requestBytes: 2, responseBytes: 7 }]);
  });

  it('has the version of HTTP that the app used', async () => {
    const upstream = await startUpstream(answering(ok('x')));
    const sidecar = await startSidecar({ upstream, accessLog: ALL });
    const client = await connectHttp2(sidecar);

    await client.answer(client.get('/over-2?a=b'));

    expect(await accessLines(sidecar)).toMatchObject([{ protocol: 'h2', path: '/over-2', status: 200 }]);
  });

  it('has only the path when the request target names the host', async () => {
    const upstream = await startUpstream(answering(ok('x')));
    const sidecar = await startSidecar({ forwardProxy: forwardTo(upstream), accessLog: ALL });

    const target = `http://${upstream.authority}/whole?key=secret`;
    await sidecar.exchange(message(`GET ${target} HTTP/1.1`, [`Host: ${upstream.authority}`]));

    expect(await accessLines(sidecar)).toMatchObject([{ path: '/whole', upstream: upstream.authority }]);
  });

  it('says that the app left before the answer', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream, accessLog: ALL });
    const client = await sidecar.connect();
    client.send(get('/'));
    await upstream.request();

    client.destroy();

    expect(await accessLines(sidecar)).toMatchObject([{ status: 499, sent: 1 }]);
  });

  it('says that the answer stopped and was cut', async () => {
    const upstream = await startUpstream(answering(message('HTTP/1.1 200 OK', [CHUNKED], chunk('half '))));
    const sidecar = await startSidecar({ upstream, accessLog: ALL, route: { timeouts: { idleMs: 150 } } });
    const client = await sidecar.connect();

    await client.send(get('/')).closed();

    expect(await accessLines(sidecar)).toMatchObject([{ status: 200, error: 'upstream_timeout' }]);
    expect(await sidecar.metric('proxy_errors_total', { route: 'api', error: 'upstream_timeout' })).toBe(1);
  });

  it('says that the answer was cut because the app stopped reading', async () => {
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

  it('has the error code when the sidecar refused the request', async () => {
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

  it('says that no route matched', async () => {
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

describe('an error answer to something that is not a readable request', () => {
  it('is logged over HTTP/1.1 with the id that the answer has', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({
      upstream,
      limits: { headerBytes: 512 },
      accessLog: { requests: 'errors', sample: 1 },
    });

    const large = await sidecar.exchange(get('/', `X-Large: ${'x'.repeat(600)}`));
    const wrong = await sidecar.exchange(message('GET /secret-path HTTP/1.1', ['Host : secret-field']));

    const lines = await accessLines(sidecar);
    expect(lines).toMatchObject([
      { status: 431, error: 'headers_too_large', protocol: 'http1', sent: 0, requestBytes: 0 },
      { status: 400, error: 'bad_request', protocol: 'http1', responseBytes: wrong.body.length },
    ]);
    expect(lines.map(({ requestId }) => requestId)).toEqual(
      [large, wrong].map(({ head }) => head.value('x-request-id')),
    );
    expect(JSON.stringify(lines)).not.toContain('secret');
  });

  it('is logged over HTTP/2 with the id of the request', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({
      upstream,
      limits: { targetBytes: 100 },
      accessLog: { requests: 'errors', sample: 1 },
    });
    const client = await connectHttp2(sidecar);

    const answered = await client.answer(client.get(`/${'x'.repeat(200)}`, 'x-request-id', 'mine'));

    expect(answered.head?.value('x-request-id')).toBe('mine');
    expect(await accessLines(sidecar)).toMatchObject([
      { requestId: 'mine', status: 414, error: 'uri_too_long', protocol: 'h2', sent: 0 },
    ]);
  });
});

describe('the access log has', () => {
  it('only failed requests, if so configured', async () => {
    const upstream = await startUpstream(
      inTurn(answering(ok('x')), answering(answer(404)), answering(answer(500)), answering(ok('x'))),
    );
    const sidecar = await startSidecar({ upstream, accessLog: { requests: 'errors', sample: 1 } });
    const client = await sidecar.connect();

    for (const path of ['/1', '/2', '/3', '/4']) await client.send(get(path)).response();

    expect((await accessLines(sidecar)).map(({ path }) => path)).toEqual(['/2', '/3']);
  });

  it('failed requests and a share of the others, if so configured', async () => {
    const upstream = await startUpstream(inTurn(answering(answer(404)), answering(ok('x'))));
    const sidecar = await startSidecar({ upstream, accessLog: { requests: 'all', sample: 0 } });
    const client = await sidecar.connect();

    for (const path of ['/1', '/2']) await client.send(get(path)).response();

    expect((await accessLines(sidecar)).map(({ path }) => path)).toEqual(['/1']);
  });

  it('no lines by default', async () => {
    const upstream = await startUpstream(answering(ok('x')));
    const sidecar = await startSidecar({ upstream });

    await sidecar.exchange(get('/'));

    expect(await accessLines(sidecar)).toEqual([]);
  });

  it('lines from the moment when a new configuration asks for them', async () => {
    const upstream = await startUpstream(answering(ok('x')));
    const sidecar = await startSidecar({ upstream });
    await sidecar.exchange(get('/before'));

    await sidecar.reconfigure({ upstream, accessLog: ALL });
    await sidecar.exchange(get('/after'));

    expect((await accessLines(sidecar)).map(({ path }) => path)).toEqual(['/after']);
  });
});
