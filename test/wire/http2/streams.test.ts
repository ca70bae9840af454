import { describe, expect, it } from 'vitest';
import { answer, CHUNKED, chunk, message, ok } from '../messages.ts';
import { answering, startUpstream } from '../raw-upstream.ts';
import { startSidecar } from '../sidecar.ts';
import { writeBlock } from './field-block.ts';
import { Code, Flag, frame, goaway, reset, Type } from './frames.ts';
import { expectHttp2Problem } from './problem.ts';
import { connectHttp2, requestFields } from './raw-http2-client.ts';

describe('an HTTP/2 stream that the app resets', () => {
  it.each([
    ['before the answer', ''],
    ['amid the answer', message('HTTP/1.1 200 OK', [CHUNKED], chunk('some'))],
  ])('%s has its upstream request aborted, and other streams go on', async (_, begun) => {
    const upstream = await startUpstream((arrived) => {
      if (arrived.head.target === '/other') arrived.answer(ok('other'));
    });
    const sidecar = await startSidecar({ upstream });
    const client = await connectHttp2(sidecar);
    const stream = client.get('/');
    const arrived = await upstream.request();
    if (begun !== '') {
      arrived.answer(begun);
      await client.head(stream);
    }

    client.send(reset(stream, Code.CANCEL));

    await arrived.connection.closed();
    expect((await client.answer(client.get('/other'))).body).toBe('other');
    expect(client.soFar(stream)).toMatchObject({ ended: false, reset: undefined });
    await sidecar.idle();
  });

  it('amid its body leaves the upstream with an incomplete body', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    const client = await connectHttp2(sidecar);
    const stream = client.post('/');
    client.data(stream, 'some');
    const arrived = await upstream.request();
    await arrived.connection.received.contains('some');

    client.send(reset(stream, Code.CANCEL));

    await expect(arrived.body()).rejects.toThrow();
    await sidecar.idle();
    expect(await sidecar.metric('proxy_requests_total', { route: 'api', code: '499' })).toBe(1);
  });
});

describe('an upstream of HTTP/1.1 that breaks off', () => {
  it('amid the answer resets that HTTP/2 stream and no other', async () => {
    const upstream = await startUpstream((arrived) => {
      if (arrived.head.target === '/other') arrived.answer(ok('other'));
    });
    const sidecar = await startSidecar({ upstream });
    const client = await connectHttp2(sidecar);
    const stream = client.get('/');
    const arrived = await upstream.request();
    arrived.answer(message('HTTP/1.1 200 OK', ['Content-Length: 100'], 'some'));
    await client.until(() => client.soFar(stream).body === 'some');

    arrived.connection.reset();

    expect(await client.resetCode(stream)).toBe(Code.INTERNAL_ERROR);
    expect(client.soFar(stream).ended).toBe(false);
    expect((await client.answer(client.get('/other'))).body).toBe('other');
  });

  it('before the answer is answered 502 over HTTP/2', async () => {
    const upstream = await startUpstream((arrived) => arrived.connection.reset());
    const sidecar = await startSidecar({ upstream });
    const client = await connectHttp2(sidecar);
    expectHttp2Problem(await client.answer(client.get('/')), 'upstream_protocol_error');
  });

  it('amid the request body is answered 502 over HTTP/2, and the rest of the body is not wanted', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    const client = await connectHttp2(sidecar);
    const stream = client.post('/');
    client.data(stream, 'some');
    const arrived = await upstream.request();

    arrived.connection.reset();

    expectHttp2Problem(await client.answer(stream), 'upstream_protocol_error');
    expect(await client.resetCode(stream)).toBe(Code.NO_ERROR);
  });
});

describe('an HTTP/2 answer that begins before the request has ended', () => {
  it('is passed on, and the rest of the request is not wanted', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    const client = await connectHttp2(sidecar);
    const stream = client.post('/');
    client.data(stream, 'some');
    (await upstream.request()).answer(answer(403, 'no'));

    const got = await client.answer(stream);

    expect([got.status, got.body]).toEqual([403, 'no']);
    expect(await client.resetCode(stream)).toBe(Code.NO_ERROR);
  });

  it('allows both sides to go on', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    const client = await connectHttp2(sidecar);
    const stream = client.post('/');
    client.data(stream, 'one');
    const arrived = await upstream.request();
    await arrived.connection.received.contains('one');
    arrived.answer(message('HTTP/1.1 200 OK', [CHUNKED], chunk('1')));
    await client.until(() => client.soFar(stream).body === '1');
    client.data(stream, 'two', true);
    expect((await arrived.body()).text).toBe('onetwo');
    arrived.answer(`${chunk('2')}0\r\n\r\n`);
    expect(await client.answer(stream)).toMatchObject({ body: '12', ended: true, reset: undefined });
  });
});

describe('streams beyond SETTINGS_MAX_CONCURRENT_STREAMS', () => {
  it('get REFUSED_STREAM, and open streams go on', async () => {
    const upstream = await startUpstream();
    const http2 = { maxStreams: 2, streamWindowBytes: 65_536, connectionWindowBytes: 65_536 };
    const sidecar = await startSidecar({ upstream, limits: { http2 } });
    const client = await connectHttp2(sidecar);
    const first = client.get('/1');
    client.get('/2');
    expect(await client.resetCode(client.get('/3'))).toBe(Code.REFUSED_STREAM);
    const arrived = await upstream.request();
    arrived.answer(ok('1'));
    await client.answer(first);
    client.get('/4');
    await upstream.request();
    await upstream.request();
    expect(upstream.targets.toSorted()).toEqual(['/1', '/2', '/4']);
  });
});

describe('a malformed HTTP/2 request', () => {
  it.each<[string, string[]]>([
    ['a name in upper case', requestFields('GET', '/', 'X-Upper', '1')],
    ['a field of the connection', requestFields('GET', '/', 'connection', 'close')],
    ['chunks', requestFields('GET', '/', 'transfer-encoding', 'chunked')],
    ['TE other than trailers', requestFields('GET', '/', 'te', 'gzip')],
    ['two hosts', requestFields('GET', '/', 'host', 'other.test')],
    ['a line end in a value', requestFields('GET', '/', 'x', 'a\r\nb')],
    ['a pseudo-field after a field', [...requestFields('GET', '/', 'x', 'y'), ':method', 'PUT']],
    ['two paths', [...requestFields('GET', '/'), ':path', '/other']],
    ['no path', [':method', 'GET', ':scheme', 'http', ':authority', 'app.test']],
    ['a path that is none', requestFields('GET', 'other.test/')],
    ['a space in the path', requestFields('GET', '/a b')],
    ['two lengths', requestFields('GET', '/', 'content-length', '0', 'content-length', '0')],
    ['an unknown pseudo-field', requestFields('GET', '/').concat(':protocol', 'websocket')],
  ])('by %s is reset, and goes nowhere', async (_, fields) => {
    const upstream = await startUpstream(answering(ok('fine')));
    const sidecar = await startSidecar({ upstream });
    const client = await connectHttp2(sidecar);
    expect(await client.resetCode(client.request(fields))).toBe(Code.PROTOCOL_ERROR);
    expect((await client.answer(client.get('/fine'))).body).toBe('fine');
    expect(upstream.targets).toEqual(['/fine']);
    expect(await sidecar.metric('proxy_errors_total', { route: 'none', error: 'bad_request' })).toBe(1);
  });

  it.each([
    ['shorter', '10', 'short'],
    ['longer', '3', 'longer'],
  ])('with a body %s than its length is reset, and never complete upstream', async (_, length, body) => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    const client = await connectHttp2(sidecar);
    const stream = client.post('/', 'content-length', length);
    const arrived = await upstream.request();
    client.data(stream, body, true);
    expect(await client.resetCode(stream)).toBe(Code.PROTOCOL_ERROR);
    await expect(arrived.body()).rejects.toThrow();
  });
});

describe('of the other frames of HTTP/2,', () => {
  it('PING is answered with its payload', async () => {
    const sidecar = await startSidecar({});
    const client = await connectHttp2(sidecar);
    client.send(frame(Type.PING, 0, 0, 'whatever'));
    const answered = await client.frame(Type.PING);
    expect([answered.flags, answered.payload.toString()]).toEqual([Flag.ACK, 'whatever']);
  });

  it('PRIORITY and frames of unknown types are ignored', async () => {
    const upstream = await startUpstream(answering(ok('fine')));
    const sidecar = await startSidecar({ upstream });
    const client = await connectHttp2(sidecar);
    const block = Buffer.concat([Buffer.from('0000000b10', 'hex'), writeBlock(requestFields('GET', '/'))]);
    client.send(
      frame(Type.PRIORITY, 0, 9, Buffer.from('00000000ff', 'hex')),
      frame(0x10, 0, 0, 'u=1'),
      frame(0x77, 0xff, 3, 'whatever'),
      frame(Type.HEADERS, Flag.END_HEADERS | Flag.END_STREAM | Flag.PRIORITY, 1, block),
    );
    expect((await client.answer(1)).body).toBe('fine');
  });

  it('GOAWAY from the app lets its streams end, and then the connection', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    const client = await connectHttp2(sidecar);
    const stream = client.get('/');
    const arrived = await upstream.request();
    client.send(goaway(0, Code.NO_ERROR));
    await client.fence();
    arrived.answer(ok('still'));
    expect((await client.answer(stream)).body).toBe('still');
    expect(await client.closed()).toBe('end');
  });

  it('PUSH_PROMISE from the app is a connection error', async () => {
    const sidecar = await startSidecar({});
    const client = await connectHttp2(sidecar);
    client.send(frame(Type.PUSH_PROMISE, Flag.END_HEADERS, 1, '\0\0\0\x02'));
    expect(await client.closed()).toBe('end');
    expect(client.goaways.at(-1)?.code).toBe(Code.PROTOCOL_ERROR);
    expect(await sidecar.metric('proxy_errors_total', { route: 'none', error: 'bad_request' })).toBe(1);
  });
});
