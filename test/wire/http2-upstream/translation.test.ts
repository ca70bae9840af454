import { describe, expect, it } from 'vitest';
import { FIRST } from '../fake-bearer.ts';
import { CHUNKED, chunk, get, LAST_CHUNK, message, post, request } from '../messages.ts';
import { expectProblem } from '../problem.ts';
import { forwardTo, type Sidecar, startSidecar } from '../sidecar.ts';
import { type Answering, HTTP2, type NodeUpstream, respond, startHttp2 } from './node-upstream.ts';

async function start(answer: Answering): Promise<{ upstream: NodeUpstream; sidecar: Sidecar }> {
  const upstream = await startHttp2(answer);
  const sidecar = await startSidecar({ upstream, route: { protocol: HTTP2 } });
  return { upstream, sidecar };
}

const echo: Answering = async ({ stream, headers, body }) => {
  const { text, trailers } = await body();
  stream.respond({ ':status': 200, 'x-method': String(headers[':method']) }, { waitForTrailers: true });
  stream.on('wantTrailers', () => {
    stream.sendTrailers({ 'x-sum': String(text.length), 'x-seen': String(trailers['x-mark']) });
  });
  stream.end(`got ${text}`);
};

describe('an HTTP/1.1 request to an HTTP/2 upstream', () => {
  it('has its target, authority and token, and none of its connection’s own fields', async () => {
    const { upstream, sidecar } = await start(respond('hello'));

    const answer = await sidecar.exchange(
      get(
        '/a/b?c=d',
        'Connection: keep-alive, X-Mine',
        'X-Mine: 1',
        'Keep-Alive: timeout=5',
        'TE: trailers, deflate',
        'Cookie: a=1; b=2',
        'X-Case: Kept',
      ),
    );

    expect(answer).toMatchObject({ status: 200, body: 'hello' });
    const [arrived] = upstream.arrived;
    expect(arrived?.headers).toMatchObject({
      ':method': 'GET',
      ':path': '/a/b?c=d',
      ':authority': upstream.authority,
      ':scheme': upstream.protocol,
      authorization: FIRST,
      te: 'trailers',
      cookie: 'a=1; b=2',
      'x-case': 'Kept',
    });
    const names = arrived?.raw.filter((_, at) => at % 2 === 0) ?? [];
    for (const gone of ['connection', 'host', 'keep-alive', 'x-mine', 'transfer-encoding']) {
      expect(names).not.toContain(gone);
    }
    expect(names.filter((name) => name === 'authorization')).toHaveLength(1);
  });

  it('is translated for a host of the forward proxy with protocol h2', async () => {
    const upstream = await startHttp2(respond('hello'));
    const sidecar = await startSidecar({ forwardProxy: forwardTo(upstream, { protocol: HTTP2 }) });
    const { authority } = upstream;

    const answer = await sidecar.exchange(
      message(`GET http://${authority}/a?b HTTP/1.1`, [`Host: ${authority}`]),
    );

    expect(answer).toMatchObject({ status: 200, body: 'hello' });
    expect(upstream.arrived[0]?.headers).toMatchObject({ ':path': '/a?b', authorization: FIRST });
  });

  it.each([
    ['with a length', post('/', 'small body'), 'got small body'],
    [
      'in chunks, with trailers',
      `${request('POST', '/', [CHUNKED, 'Trailer: X-Mark']) + chunk('one ') + chunk('two')}0\r\nX-Mark: seen\r\n\r\n`,
      'got one two',
    ],
    ['in chunks', request('PUT', '/', [CHUNKED]) + chunk('three') + LAST_CHUNK, 'got three'],
    ['of nothing', request('POST', '/', ['Content-Length: 0']), 'got '],
  ])('has its body passed %s and gets the answer with its trailers', async (_, bytes, body) => {
    const { sidecar } = await start(echo);

    const answer = await sidecar.exchange(bytes);

    expect(answer).toMatchObject({ status: 200, body });
    expect(answer.trailers.value('x-sum')).toBe(String(body.length - 4));
    expect(answer.trailers.value('x-seen')).toBe(bytes.includes('X-Mark: seen') ? 'seen' : 'undefined');
  });

  it('shares one connection with others, both in sequence and at once', async () => {
    const { upstream, sidecar } = await start(respond('x'));
    await sidecar.exchange(get('/first'));

    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) => sidecar.exchange(get(`/${index}`))),
    );

    expect(answers.map(({ status }) => status)).toEqual(new Array(50).fill(200));
    expect(upstream.arrived).toHaveLength(51);
    expect(upstream.connections()).toBe(1);
  });

  it('may have a body larger than every window in both directions', async () => {
    const { sidecar } = await start(async ({ stream, body }) => {
      const { text } = await body();
      stream.respond({ ':status': 200 });
      stream.end(text);
    });
    const large = 'abcdefghij'.repeat(200_000);

    const answer = await sidecar.exchange(post('/', large));

    expect(answer.body.length).toBe(large.length);
    expect(answer.body === large).toBe(true);
  });

  it.each([
    ['HEAD', 200],
    ['GET', 204],
    ['GET', 304],
  ])('gets an answer without a body to %s with %i', async (method, status) => {
    const { sidecar } = await start(({ stream }) => {
      stream.respond({ ':status': status, ...(method === 'HEAD' ? { 'content-length': 5 } : {}) });
      stream.end();
    });
    const client = await sidecar.connect();

    for (const _ of [1, 2]) {
      const answer = await client.send(request(method, '/')).response(method);
      expect(answer).toMatchObject({ status, body: '' });
    }
  });

  it('gets an empty answer and sees its end', async () => {
    const { sidecar } = await start(({ stream }) => stream.respond({ ':status': 200 }, { endStream: true }));
    const client = await sidecar.connect();

    for (const _ of [1, 2]) {
      expect(await client.send(get('/')).response()).toMatchObject({ status: 200, body: '' });
    }
  });

  it('gets interim answers, and 100 if it asked for that', async () => {
    const { sidecar } = await start(async ({ stream, headers, body }) => {
      stream.additionalHeaders({ ':status': 103, link: '</x>; rel=preload' });
      expect(headers['expect']).toBe('100-continue');
      stream.additionalHeaders({ ':status': 100 });
      const { text } = await body();
      stream.respond({ ':status': 201 });
      stream.end(text);
    });
    const client = await sidecar.connect();
    client.send(message('POST / HTTP/1.1', ['Host: app.test', 'Content-Length: 4', 'Expect: 100-continue']));
    expect((await client.head()).status).toBe(103);
    expect((await client.head()).status).toBe(100);

    expect(await client.send('body').response()).toMatchObject({ status: 201, body: 'body' });
  });

  it('for a WebSocket is refused with a clear error, and the connection goes on', async () => {
    const { upstream, sidecar } = await start(respond('x'));
    await sidecar.exchange(get('/first'));

    const answer = await sidecar.exchange(get('/', 'Connection: Upgrade', 'Upgrade: websocket'));

    expectProblem(answer, 'upstream_protocol_error');
    expect(JSON.parse(answer.body).detail).toContain('protocol: http1');
    expect(sidecar.logLines.filter((line) => line.includes('"request not completed"'))).toHaveLength(1);
    expect(upstream.arrived).toHaveLength(1);
    await sidecar.exchange(get('/next'));
    expect(upstream.connections()).toBe(1);
  });

  it('that offers another protocol than WebSocket is sent as an ordinary request', async () => {
    const { upstream, sidecar } = await start(respond('x'));

    const answer = await sidecar.exchange(
      get('/', 'Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABk'),
    );

    expect(answer.status).toBe(200);
    expect(upstream.arrived[0]?.headers).not.toHaveProperty('http2-settings');
  });
});

describe('an HTTP/2 answer to an HTTP/1.1 request', () => {
  it('has no trailers that could be taken for fields of the head', async () => {
    const { sidecar } = await start(({ stream }) => {
      stream.respond({ ':status': 200 }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'set-cookie': 'a=1', 'x-fine': '1' }));
      stream.end('x');
    });

    const { trailers } = await sidecar.exchange(get('/'));

    expect(trailers.value('x-fine')).toBe('1');
    expect(trailers.value('set-cookie')).toBeUndefined();
  });

  it('that comes before the request is complete ends the request, and the connection goes on', async () => {
    const { upstream, sidecar } = await start(({ stream }) => {
      stream.respond({ ':status': 413 }, { endStream: true });
    });
    const client = await sidecar.connect();
    client.send(message('POST / HTTP/1.1', ['Host: app.test', 'Content-Length: 1000'], 'some'));

    expect((await client.response()).status).toBe(413);

    await sidecar.exchange(get('/'));
    expect(upstream.connections()).toBe(1);
  });
});
