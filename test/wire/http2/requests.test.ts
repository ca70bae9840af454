import { describe, expect, it } from 'vitest';
import { FIRST, renewable, SECOND, withoutToken } from '../fake-bearer.ts';
import { answer, CHUNKED, chunk, message, ok } from '../messages.ts';
import { answering, inTurn, startUpstream } from '../raw-upstream.ts';
import { routeTo, startSidecar } from '../sidecar.ts';
import { Code } from './frames.ts';
import { expectHttp2Problem } from './problem.ts';
import { connectHttp2, requestFields } from './raw-http2-client.ts';

describe('a request over HTTP/2', () => {
  it('is sent upstream with the token, Host and path, and its answer is returned', async () => {
    const upstream = await startUpstream(answering(ok('hello', 'X-Mixed-Case: 1')));
    const sidecar = await startSidecar({ upstream });
    const client = await connectHttp2(sidecar);

    const got = await client.answer(client.get('/path?q=1', 'accept', 'text/plain'));

    expect([got.status, got.body, got.reset]).toEqual([200, 'hello', undefined]);
    expect(got.head?.value('x-mixed-case')).toBe('1');
    expect(got.head?.value('content-length')).toBe('5');
    const { head } = await upstream.request();
    expect([head.method, head.target]).toEqual(['GET', '/path?q=1']);
    expect(head.values('host')).toEqual([upstream.authority]);
    expect(head.values('authorization')).toEqual([FIRST]);
    expect(head.values('accept')).toEqual(['text/plain']);
    expect(head.value('content-length')).toBeUndefined();
    expect(head.value('transfer-encoding')).toBeUndefined();
    await sidecar.idle();
    expect(await sidecar.metric('proxy_requests_total', { route: 'api', method: 'GET', code: '200' })).toBe(
      1,
    );
  });

  it('with a body is forwarded with the declared Content-Length', async () => {
    const upstream = await startUpstream(answering(ok()));
    const sidecar = await startSidecar({ upstream });
    const client = await connectHttp2(sidecar);
    const stream = client.post('/', 'content-length', '10');
    client.data(stream, 'hello').data(stream, 'world', true);

    expect((await client.answer(stream)).status).toBe(200);
    const arrived = await upstream.request();
    expect(arrived.head.values('content-length')).toEqual(['10']);
    expect((await arrived.body()).text).toBe('helloworld');
  });

  it('without a declared length is forwarded chunked with its trailers', async () => {
    const upstream = await startUpstream(answering(ok()));
    const sidecar = await startSidecar({ upstream });
    const client = await connectHttp2(sidecar);
    const stream = client.post('/', 'te', 'trailers', 'trailer', 'x-sum');
    client.data(stream, 'some').headers(stream, ['x-sum', '7', 'authorization', 'Bearer smuggled'], true);

    expect((await client.answer(stream)).status).toBe(200);
    const arrived = await upstream.request();
    expect(arrived.head.values('transfer-encoding')).toEqual(['chunked']);
    expect(arrived.head.values('te')).toEqual(['trailers']);
    expect(arrived.head.values('trailer')).toEqual(['x-sum']);
    const body = await arrived.body();
    expect(body.text).toBe('some');
    expect(body.trailers.value('x-sum')).toBe('7');
    expect(body.trailers.value('authorization')).toBeUndefined();
  });

  it('without a body is forwarded with Content-Length: 0 if its method usually has one', async () => {
    const upstream = await startUpstream(answering(ok()));
    const sidecar = await startSidecar({ upstream });
    const client = await connectHttp2(sidecar);
    await client.answer(client.request(requestFields('POST', '/')));
    expect((await upstream.request()).head.values('content-length')).toEqual(['0']);
  });

  it('has its cookie fields joined', async () => {
    const upstream = await startUpstream(answering(ok()));
    const sidecar = await startSidecar({ upstream });
    const client = await connectHttp2(sidecar);
    await client.answer(client.get('/', 'cookie', 'a=1', 'x', 'y', 'cookie', 'b=2'));
    expect((await upstream.request()).head.values('cookie')).toEqual(['a=1; b=2']);
  });

  it('may name its authority by Host alone', async () => {
    const upstream = await startUpstream(answering(ok()));
    const sidecar = await startSidecar({
      routes: [routeTo(upstream, { match: { host: 'only.test' } })],
    });
    const client = await connectHttp2(sidecar);
    const stream = client.request([':method', 'GET', ':scheme', 'http', ':path', '/', 'host', 'only.test']);
    expect((await client.answer(stream)).status).toBe(200);
    expect((await upstream.request()).head.values('host')).toEqual([upstream.authority]);
  });

  it('is one of many on a connection, answered in any order', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    const client = await connectHttp2(sidecar);
    const streams = ['/a', '/b', '/c'].map((path) => client.get(path));
    const arrived = [await upstream.request(), await upstream.request(), await upstream.request()];
    const byTarget = (target: string) => arrived.find(({ head }) => head.target === target);

    byTarget('/c')?.answer(ok('c'));
    expect((await client.answer(streams[2] as number)).body).toBe('c');
    byTarget('/a')?.answer(ok('a'));
    expect((await client.answer(streams[0] as number)).body).toBe('a');
    byTarget('/b')?.answer(ok('b'));
    expect((await client.answer(streams[1] as number)).body).toBe('b');
  });
});

describe('an answer over HTTP/2', () => {
  it('that is chunked upstream arrives as it is sent, with its trailers', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    const client = await connectHttp2(sidecar);
    const stream = client.get('/');
    const arrived = await upstream.request();
    arrived.answer(message('HTTP/1.1 200 OK', [CHUNKED, 'Trailer: X-Sum'], chunk('first')));
    await client.until(() => client.soFar(stream).body === 'first');

    arrived.answer(`${chunk(' second')}0\r\nX-Sum: 7\r\n\r\n`);

    const got = await client.answer(stream);
    expect(got.body).toBe('first second');
    expect(got.head?.value('trailer')).toBe('X-Sum');
    expect(got.head?.value('transfer-encoding')).toBeUndefined();
    expect(got.trailers?.fields).toEqual(['x-sum', '7']);
  });

  it('has no connection-specific fields', async () => {
    const fields = ['Connection: keep-alive, X-Hop', 'Keep-Alive: timeout=5', 'X-Hop: 1', 'Upgrade: h2c'];
    const upstream = await startUpstream(answering(ok('', ...fields)));
    const sidecar = await startSidecar({ upstream });
    const client = await connectHttp2(sidecar);
    const { head } = await client.answer(client.get('/'));
    expect(head?.fields).toEqual([':status', '200', 'content-length', '0']);
  });

  it.each([
    ['to HEAD', 'HEAD', message('HTTP/1.1 200 OK', ['Content-Length: 100']), ['content-length', '100']],
    ['204', 'GET', message('HTTP/1.1 204 No Content', []), []],
    ['304', 'GET', message('HTTP/1.1 304 Not Modified', ['Content-Length: 5']), ['content-length', '5']],
  ])('for %s is one frame', async (_, method, bytes, fields) => {
    const upstream = await startUpstream(answering(bytes));
    const sidecar = await startSidecar({ upstream });
    const client = await connectHttp2(sidecar);
    const stream = client.request(requestFields(method, '/'));
    const got = await client.answer(stream);
    expect(got.head?.fields.slice(2)).toEqual(fields);
    expect(client.frames.filter(({ streamId }) => streamId === stream)).toHaveLength(1);
  });

  it('is preceded by the interim ones', async () => {
    const hints = message('HTTP/1.1 103 Early Hints', ['Link: </a>', 'Connection: x']);
    const upstream = await startUpstream(answering(hints + ok('done')));
    const sidecar = await startSidecar({ upstream });
    const client = await connectHttp2(sidecar);
    const got = await client.answer(client.get('/'));
    expect(got.interim.map(({ fields }) => fields)).toEqual([[':status', '103', 'link', '</a>']]);
    expect(got.body).toBe('done');
  });

  it('includes 100 only if it was asked for', async () => {
    const upstream = await startUpstream(async (arrived) => {
      arrived.answer('HTTP/1.1 100 Continue\r\n\r\n');
      await arrived.body();
      arrived.answer(ok());
    });
    const sidecar = await startSidecar({ upstream });
    const client = await connectHttp2(sidecar);
    const expecting = client.post('/', 'expect', '100-continue');
    await client.until(() => client.soFar(expecting).interim.length > 0);
    client.data(expecting, 'body', true);
    const unasking = client.post('/');
    client.data(unasking, 'body', true);

    expect((await client.answer(expecting)).interim.map((head) => head.value(':status'))).toEqual(['100']);
    expect((await client.answer(unasking)).interim).toEqual([]);
  });
});

describe('over HTTP/2, as over HTTP/1.1,', () => {
  it('a request with a refused token is sent again with a new one', async () => {
    const upstream = await startUpstream(inTurn(answering(answer(401)), answering(ok('in'))));
    const sidecar = await startSidecar({ upstream, bearer: renewable() });
    const client = await connectHttp2(sidecar);
    const stream = client.post('/');
    client.data(stream, 'again', true);

    expect((await client.answer(stream)).body).toBe('in');
    expect(upstream.requests.map(({ head }) => head.value('authorization'))).toEqual([FIRST, SECOND]);
    expect((await upstream.requests[1]?.body())?.text).toBe('again');
  });

  it('a request without a token gets 503', async () => {
    const upstream = await startUpstream(answering(ok()));
    const sidecar = await startSidecar({ upstream, bearer: withoutToken() });
    const client = await connectHttp2(sidecar);
    expectHttp2Problem(await client.answer(client.get('/')), 'token_unavailable');
    expect(upstream.requests).toEqual([]);
  });

  it.each([
    ['replaced', 'replace', [FIRST]],
    ['kept', 'keep', ['Bearer own']],
  ] as const)('the app’s own Authorization is %s', async (_, existingAuthorization, expected) => {
    const upstream = await startUpstream(answering(ok()));
    const sidecar = await startSidecar({ upstream, route: { existingAuthorization } });
    const client = await connectHttp2(sidecar);
    await client.answer(client.get('/', 'authorization', 'Bearer own'));
    expect((await upstream.request()).head.values('authorization')).toEqual(expected);
  });

  it('the app’s own Authorization is refused', async () => {
    const upstream = await startUpstream(answering(ok()));
    const sidecar = await startSidecar({ upstream, route: { existingAuthorization: 'reject' } });
    const client = await connectHttp2(sidecar);
    const got = await client.answer(client.get('/', 'authorization', 'Bearer own'));
    expectHttp2Problem(got, 'authorization_not_allowed');
  });

  it('the first route that matches host and path is used, and no match is 404', async () => {
    const [one, two] = [await startUpstream(answering(ok('one'))), await startUpstream(answering(ok('two')))];
    const sidecar = await startSidecar({
      routes: [
        routeTo(one, { name: 'one', match: { host: 'app.test', pathPrefix: '/a' } }),
        routeTo(two, { name: 'two', match: { host: 'other.test', pathPrefix: '/' } }),
      ],
    });
    const client = await connectHttp2(sidecar);
    const other = [':method', 'GET', ':scheme', 'http', ':authority', 'other.test:80', ':path', '/x'];
    expect((await client.answer(client.get('/a/b'))).body).toBe('one');
    expect((await client.answer(client.request(other))).body).toBe('two');
    expectHttp2Problem(await client.answer(client.get('/x')), 'route_not_found');
  });

  it('a request that passed this sidecar before is a loop', async () => {
    const upstream = await startUpstream(answering(ok()));
    const sidecar = await startSidecar({ upstream, instanceId: 'me' });
    const client = await connectHttp2(sidecar);
    expectHttp2Problem(await client.answer(client.get('/', 'token-sidecar-hop', 'me')), 'loop_detected');
  });

  it('the limit of requests in flight counts streams, not connections', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream, limits: { maxInFlight: 2 } });
    const client = await connectHttp2(sidecar);
    client.get('/1');
    client.get('/2');
    expectHttp2Problem(await client.answer(client.get('/3')), 'overloaded');
  });

  it('an error to an incomplete request ends it with RST_STREAM(NO_ERROR)', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ routes: [routeTo(upstream, { match: { pathPrefix: '/a' } })] });
    const client = await connectHttp2(sidecar);
    const stream = client.post('/x');
    expect(await client.resetCode(stream)).toBe(Code.NO_ERROR);
    expectHttp2Problem(client.soFar(stream), 'route_not_found');
    expect(client.soFar(stream).ended).toBe(true);
    client.data(stream, 'late', true);
    await client.fence();
    expect(client.goaways).toEqual([]);
  });

  it('a body that is too large is refused, whether its length was declared or not', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream, limits: { requestBodyBytes: 5 } });
    const client = await connectHttp2(sidecar);
    expectHttp2Problem(await client.answer(client.post('/', 'content-length', '6')), 'request_too_large');
    const stream = client.post('/');
    client.data(stream, 'hello').data(stream, '!');
    expectHttp2Problem(await client.answer(stream), 'request_too_large');
    expect(await client.resetCode(stream)).toBe(Code.NO_ERROR);
    await upstream.connections.at(-1)?.closed();
  });

  it('too large a head or path is refused, and other streams go on', async () => {
    const upstream = await startUpstream(answering(ok('fine')));
    const sidecar = await startSidecar({ upstream, limits: { headerBytes: 2000, targetBytes: 1000 } });
    const client = await connectHttp2(sidecar);
    const large = client.get('/', 'x', 'y'.repeat(8000));
    const many = client.get('/', ...Array.from({ length: 101 }, () => ['x', 'y']).flat());
    const long = client.get(`/${'x'.repeat(1000)}`);
    const plain = client.get('/');
    expectHttp2Problem(await client.answer(large), 'headers_too_large');
    expectHttp2Problem(await client.answer(many), 'headers_too_large');
    expectHttp2Problem(await client.answer(long), 'uri_too_long');
    expect((await client.answer(plain)).body).toBe('fine');
    expect(await sidecar.metric('proxy_errors_total', { route: 'none', error: 'headers_too_large' })).toBe(2);
  });
});
