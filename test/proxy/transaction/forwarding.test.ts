import { describe, expect, it } from 'vitest';
import { settle } from '../../support/manual-clock.ts';
import { FakeBearer, FIRST, renewable, SECOND, withoutToken } from '../../wire/fake-bearer.ts';
import { answer, CHUNKED, chunk, get, message, ok, request } from '../../wire/messages.ts';
import { serve } from './ported-transaction.ts';

const POST = request('POST', '/', ['Content-Length: 5']);
const sent = (text: string, name: string) =>
  text.split('\r\n').flatMap((line) => (line.startsWith(`${name}: `) ? [line.slice(name.length + 2)] : []));

describe('a request when a token is held', () => {
  it('is sent at once, and its answer is passed on', async () => {
    const { app, upstream, transaction, clock, metric, load } = serve(get('/a?b'));
    expect(upstream().sent).toMatch(/^GET \/a\?b HTTP\/1\.1\r\n/);
    expect(sent(upstream().sent, 'authorization')).toEqual([FIRST]);
    expect(sent(upstream().sent, 'content-length')).toEqual([]);
    expect(app.held).toBe(false);
    expect(load.inFlight).toBe(1);
    upstream().bring(ok('hello'));
    expect(app.text).toBe('HTTP/1.1 200 Reason\r\nContent-Length: 5\r\n\r\nhello');
    expect(app.ended).toEqual({ last: false, timeoutMs: 10_000 });
    transaction.settle(clock.monotonicMs());
    transaction.settle(clock.monotonicMs());
    expect(load.inFlight).toBe(0);
    expect(await metric('requests_total{route="api",method="GET",code="200"}')).toBe(1);
  });

  it.each([
    ['DELETE', []],
    ['GET', []],
    ['HEAD', []],
    ['OPTIONS', []],
    ['TRACE', []],
    ['POST', ['0']],
    ['PUT', ['0']],
    ['PATCH', ['0']],
    ['LINK', ['0']],
  ])('with method %s and no body has Content-Length %j', (method, lengths) => {
    expect(sent(serve(request(method, '/')).upstream().sent, 'content-length')).toEqual(lengths);
  });

  it('has no token if the method is TRACE or the app’s Authorization is kept', () => {
    expect(sent(serve(request('TRACE', '/')).upstream().sent, 'authorization')).toEqual([]);
    const own = get('/', 'authorization: Basic YTpi');
    const keep = { route: { existingAuthorization: 'keep' } } as const;
    expect(sent(serve(own, keep).upstream().sent, 'authorization')).toEqual(['Basic YTpi']);
    expect(sent(serve(get('/'), keep).upstream().sent, 'authorization')).toEqual([FIRST]);
    expect(sent(serve(own).upstream().sent, 'authorization')).toEqual([FIRST]);
  });

  it('offers Upgrade only over HTTP/1.1 and without a body', () => {
    const fields = ['Connection: upgrade', 'Upgrade: raw'];
    expect(sent(serve(get('/', ...fields)).upstream().sent, 'upgrade')).toEqual(['raw']);
    const posted = serve(request('POST', '/', [...fields, 'Content-Length: 1']));
    posted.send('x', { end: true });
    expect(sent(posted.upstream().sent, 'upgrade')).toEqual([]);
    const old = serve(message('GET / HTTP/1.0', ['Host: app.test', ...fields]));
    expect(sent(old.upstream().sent, 'upgrade')).toEqual([]);
  });

  it('waits for its connection, and the app is paused only if more of it is to come', () => {
    const whole = serve(get('/'), { lent: 'coming' });
    expect(whole.app.held).toBe(false);
    const { app, upstream, send } = serve(POST, { lent: 'coming' });
    expect(app.held).toBe(true);
    expect(upstream().sent).toBe('');
    upstream().connection.socket.emit('connect');
    expect(app.held).toBe(false);
    send('hello', { end: true });
    expect(upstream().sent).toMatch(/^POST [\s\S]*\r\n\r\nhello$/);
  });

  it('has the token that is held when it is written', () => {
    const { bearer, upstream } = serve(get('/'), { lent: 'coming' });
    bearer.held = SECOND;
    upstream().connection.socket.emit('connect');
    expect(sent(upstream().sent, 'authorization')).toEqual([SECOND]);
  });

  it('pauses an app that is faster than the upstream', () => {
    const { app, upstream, send } = serve(request('POST', '/', [CHUNKED]));
    upstream().sink.stuck = true;
    for (let piece = 0; piece < 10; piece++) send('x'.repeat(10_000));
    expect(app.held).toBe(true);
    upstream().connection.socket.emit('drain');
    expect(app.held).toBe(false);
  });

  it('pauses an upstream that is faster than the app', () => {
    const { app, transaction, upstream } = serve(get('/'));
    app.sink.stuck = true;
    upstream().bring(message('HTTP/1.1 200 OK', ['Content-Length: 1000000'], 'x'.repeat(60_000)));
    upstream().bring('x'.repeat(60_000));
    expect(upstream().connection.socket.isPaused()).toBe(true);
    transaction.onDownstreamDrain();
    expect(upstream().connection.socket.isPaused()).toBe(false);
  });
});

describe('an idle connection is used without a check', () => {
  it.each([
    ['for a second for an idempotent request', get('/'), [1000]],
    ['for a second for a request with Idempotency-Key', request('POST', '/', ['Idempotency-Key: 1']), [1000]],
    [
      'for a second for an idempotent request with a small body',
      request('PUT', '/', ['Content-Length: 5']),
      [1000],
    ],
    ['for a tenth of a second for other requests', request('POST', '/'), [100]],
    [
      'for a tenth of a second if the body may exceed the replay limit',
      request('PUT', '/', [CHUNKED]),
      [100],
    ],
    [
      'for a tenth of a second if the body will exceed the replay limit',
      request('PUT', '/', ['Content-Length: 1025']),
      [100],
    ],
  ])('%s', (_, bytes, asked) => {
    expect(serve(bytes).asked).toEqual(asked);
  });

  it('never for a non-idempotent request after a 401', async () => {
    const { upstream, asked } = serve(request('POST', '/'), { bearer: renewable() });
    upstream().bring(answer(401));
    await settle();
    expect(asked).toEqual([100, 0]);
  });
});

describe('a request when no token is held', () => {
  it('waits for one, and the app is paused only if more of the request is to come', async () => {
    const token = Promise.withResolvers<string>();
    const bearer = new FakeBearer({ held: undefined, obtain: () => token.promise });
    const whole = serve(get('/'), { bearer });
    expect([whole.app.held, whole.asked]).toEqual([false, []]);
    const { app, upstream, send } = serve(POST, { bearer });
    expect(app.held).toBe(true);
    token.resolve(FIRST);
    await settle();
    expect(app.held).toBe(false);
    expect(sent(upstream().sent, 'authorization')).toEqual([FIRST]);
    send('hello', { end: true });
    expect(upstream().sent.endsWith('\r\n\r\nhello')).toBe(true);
  });

  it('gets 503 if there is none, and no connection is requested', async () => {
    const { app, asked, lines, metric } = serve(get('/'), { bearer: withoutToken() });
    await settle();
    expect(app.text).toMatch(/^HTTP\/1\.1 503 /);
    expect(asked).toEqual([]);
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ route: 'api', error: 'token_unavailable' });
    expect(await metric('errors_total{route="api",error="token_unavailable"}')).toBe(1);
  });

  it('is sent without one if the route allows it, also when the connection comes late', async () => {
    const route = { whenTokenUnavailable: 'passthrough' } as const;
    const { upstream, bearer } = serve(get('/'), { bearer: withoutToken(), route, lent: 'coming' });
    await settle();
    upstream().connection.socket.emit('connect');
    await settle();
    expect(upstream().sent).toMatch(/^GET /);
    expect(sent(upstream().sent, 'authorization')).toEqual([]);
    expect(bearer.obtained).toBe(1);
  });

  it('is not sent after an unexpected failure, even if the route needs no token', async () => {
    const bearer = new FakeBearer({ held: undefined, obtain: () => Promise.reject(new Error('x')) });
    const { app, asked } = serve(get('/'), { bearer, route: { whenTokenUnavailable: 'passthrough' } });
    await settle();
    expect(app.text).toMatch(/^HTTP\/1\.1 500 /);
    expect(asked).toEqual([]);
  });

  it('is not sent if the app left meanwhile', async () => {
    const token = Promise.withResolvers<string>();
    const bearer = new FakeBearer({ held: undefined, obtain: () => token.promise });
    const { transaction, asked } = serve(get('/'), { bearer });
    transaction.appGone();
    token.resolve(FIRST);
    await settle();
    expect(asked).toEqual([]);
  });

  it('because it expired during the connect returns the connection and asks again', async () => {
    const token = Promise.withResolvers<string>();
    const bearer = new FakeBearer({ obtain: () => token.promise });
    const { app, upstream, upstreams } = serve(POST, { bearer, lent: 'coming' });
    bearer.held = undefined;
    upstream().connection.socket.emit('connect');
    expect(upstream().connection.ready).toBe(false);
    expect(upstream().connection.socket.destroyed).toBe(false);
    expect(app.held).toBe(true);
    token.resolve(SECOND);
    await settle();
    upstreams[1]?.connection.socket.emit('connect');
    expect(upstream().sent).toBe('');
    expect(sent(upstream(1).sent, 'authorization')).toEqual([SECOND]);
  });
});

describe('a 401 to a request', () => {
  it('is replayed once with another token, and counted', async () => {
    const { app, bearer, upstream, metric } = serve(get('/'), { bearer: renewable() });
    upstream().bring(answer(401, 'no'));
    await settle();
    expect(bearer.refused).toEqual([FIRST]);
    expect(app.text).toBe('');
    expect(sent(upstream(1).sent, 'authorization')).toEqual([SECOND]);
    expect(await metric('replays_total{route="api",result="success"}')).toBe(0);
    upstream(1).bring(ok('fine'));
    expect(app.text).toContain('fine');
    expect(app.text).not.toContain('401');
    expect(bearer.accepts).toEqual([SECOND]);
    expect(await metric('upstream_unauthorized_total{route="api"}')).toBe(1);
    expect(await metric('replays_total{route="api",result="success"}')).toBe(1);
    expect(await metric('replays_total{route="api",result="failure"}')).toBe(0);
  });

  it('to the replay is passed on as a failure', async () => {
    const { app, bearer, upstream, metric } = serve(get('/'), { bearer: renewable() });
    upstream().bring(answer(401, 'no'));
    await settle();
    upstream(1).bring(answer(401, 'still no'));
    await settle();
    expect(app.text).toContain('still no');
    expect(bearer.refused).toEqual([FIRST]);
    expect(bearer.accepts).toEqual([]);
    expect(await metric('upstream_unauthorized_total{route="api"}')).toBe(2);
    expect(await metric('replays_total{route="api",result="failure"}')).toBe(1);
  });

  it('whose replay is aborted counts as a failure', async () => {
    const { transaction, upstream, metric } = serve(get('/'), { bearer: renewable() });
    upstream().bring(answer(401, 'no'));
    await settle();
    transaction.appGone();
    expect(await metric('replays_total{route="api",result="failure"}')).toBe(1);
  });

  it('is passed on unchanged if there is no other token', async () => {
    for (const other of [undefined, FIRST]) {
      const bearer = new FakeBearer({ replace: async () => other });
      const { app, upstream, upstreams, metric } = serve(POST, { bearer });
      upstream().bring(answer(401, 'no'));
      expect(app.text).toBe('');
      expect(app.held).toBe(true);
      await settle();
      expect(app.held).toBe(false);
      expect(app.text).toBe('HTTP/1.1 401 Reason\r\nContent-Length: 2\r\n\r\nno');
      expect(upstreams).toHaveLength(1);
      expect(await metric('replays_total{route="api",result="failure"}')).toBe(0);
    }
  });

  it.each([
    ['the route says so', get('/'), { retryOn401: false }, []],
    [
      'the app has its own Authorization',
      get('/', 'authorization: Basic x'),
      { existingAuthorization: 'keep' },
      [],
    ],
    ['no token was sent', request('TRACE', '/'), {}, []],
  ] as const)('is passed on at once if %s', (_, bytes, route, refused) => {
    const { app, bearer, upstream } = serve(bytes, { bearer: renewable(), route });
    upstream().bring(answer(401, 'no'));
    expect(app.text).toContain('401');
    expect(bearer.refused).toEqual(refused);
  });

  it('too large to keep is passed on, and the token is renewed all the same', async () => {
    const { app, bearer, upstream, send, upstreams } = serve(request('POST', '/', [CHUNKED]), {
      bearer: renewable(),
    });
    send('x'.repeat(1025));
    upstream().bring(answer(401, 'no'));
    expect(app.text).toContain('401');
    expect(bearer.refused).toEqual([FIRST]);
    await settle();
    expect(upstreams).toHaveLength(1);
  });

  it('whose app has left is not replayed', async () => {
    const token = Promise.withResolvers<string>();
    const bearer = new FakeBearer({ replace: () => token.promise });
    const { transaction, upstream, upstreams, app } = serve(get('/'), { bearer });
    upstream().bring(answer(401, 'no'));
    transaction.appGone();
    token.resolve(SECOND);
    await settle();
    expect(upstreams).toHaveLength(1);
    expect(app.text).toBe('');
  });

  it('with more of its body to come is replayed with all of it', async () => {
    const { upstream, send } = serve(request('PUT', '/', [CHUNKED]), { bearer: renewable() });
    send('one');
    upstream().bring(answer(401, 'no'));
    await settle();
    send('two', { end: true, trailers: ['x', 'y'] });
    const body = `${chunk('one')}${chunk('two')}0\r\nx: y\r\n\r\n`;
    expect(upstream(1).sent.endsWith(`\r\n\r\n${body}`)).toBe(true);
    expect(upstream().sent.endsWith(chunk('one'))).toBe(true);
  });
});

describe('a failed upstream connection', () => {
  const reset = Object.assign(new Error('reset'), { code: 'ECONNRESET' });

  it.each<[string, string, 'reused' | 'new', boolean]>([
    ['idempotent, on a reused one', get('/'), 'reused', true],
    ['idempotent, on a new one', get('/'), 'new', true],
    ['not idempotent, on a reused one', request('POST', '/'), 'reused', false],
    ['with a key, on a reused one', request('POST', '/', ['Idempotency-Key: 1']), 'reused', true],
    ['idempotent, with a small body', request('PUT', '/', ['Content-Length: 5']), 'reused', true],
    ['idempotent, with a large body', request('PUT', '/', ['Content-Length: 1025']), 'reused', false],
  ])('is replaced only if the request can be repeated: %s', async (_, bytes, lent, again) => {
    const { app, upstream, upstreams, asked, discarded, send } = serve(bytes, { lent });
    send(bytes.startsWith('P') && bytes.includes('Length: 1025') ? 'x'.repeat(1025) : '');
    upstream().connection.socket.emit('error', reset);
    if (!again) {
      expect(app.text).toMatch(/^HTTP\/1\.1 502 /);
      expect(upstreams).toHaveLength(1);
      return;
    }
    expect(asked.at(-1)).toBe('new');
    expect(discarded()).toBe(1);
    upstream(1).connection.socket.emit('connect');
    expect(upstream(1).sent).not.toBe('');
    upstream(1).connection.socket.emit('error', reset);
    expect(app.text).toMatch(/^HTTP\/1\.1 502 /);
    expect(upstreams).toHaveLength(2);
  });

  it('is logged and counted', async () => {
    const { upstream, lines, metric } = serve(request('POST', '/'));
    upstream().connection.socket.emit('error', reset);
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ route: 'api', error: 'upstream_protocol_error' });
    expect(await metric('errors_total{route="api",error="upstream_protocol_error"}')).toBe(1);
  });

  it('is neither logged nor counted after the app left', () => {
    const { transaction, upstream, lines, app } = serve(get('/'));
    transaction.appGone();
    upstream().connection.socket.emit('error', reset);
    expect([lines, app.text]).toEqual([[], '']);
    expect(upstream().connection.socket.destroyed).toBe(true);
  });
});

describe('the idle timeout', () => {
  const route = { timeouts: { idleMs: 5000, responseMs: 60_000 } };

  it('amid an answer cuts it', async () => {
    const { app, upstream, clock, lines } = serve(get('/'), { route });
    upstream().bring(message('HTTP/1.1 200 OK', ['Content-Length: 5'], 'he'));
    await clock.advance(5000);
    expect(app.cutBy).toBe('end');
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ route: 'api', error: 'upstream_timeout' });
    expect(upstream().connection.socket.destroyed).toBe(true);
  });

  it('amid an answer delimited by the connection resets the connection', async () => {
    const { app, upstream, clock } = serve(message('GET / HTTP/1.0', ['Host: app.test']), { route });
    upstream().bring(message('HTTP/1.1 200 OK', [CHUNKED], chunk('he')));
    await clock.advance(5000);
    expect(app.cutBy).toBe('reset');
  });

  it.each<[string, string[], boolean, number]>([
    ['delayed by the app leads to 408', [], false, 408],
    ['delayed by the upstream leads to 504', [], true, 504],
    ['delayed by a missing 100 leads to 504', ['Expect: 100-continue'], false, 504],
  ])('amid a request %s', async (_, fields, stuck, status) => {
    const { app, upstream, clock, send } = serve(request('POST', '/', ['Content-Length: 5', ...fields]), {
      route,
    });
    upstream().sink.stuck = stuck;
    send('he');
    send('l');
    await clock.advance(5000);
    expect(app.text).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  });
});

describe('a 101 of the upstream', () => {
  const SWITCH = message('HTTP/1.1 101 Switching Protocols', ['Connection: upgrade', 'Upgrade: raw']);

  it('without an offer fails the request', () => {
    const { app, upstream } = serve(get('/'));
    upstream().bring(SWITCH);
    expect(app.text).toMatch(/^HTTP\/1\.1 502 /);
  });

  it('to an offer takes over the connection and accepts the token', async () => {
    const { app, bearer, transaction, upstream, metric, clock } = serve(
      get('/', 'Connection: upgrade', 'Upgrade: raw'),
    );
    upstream().bring(SWITCH);
    expect(app.text).toContain('HTTP/1.1 101 Switching Protocols\r\n');
    expect(bearer.accepts).toEqual([FIRST]);
    transaction.appGone();
    expect(await metric('requests_total{route="api",method="GET",code="101"}')).toBe(1);
    expect(upstream().connection.socket.destroyed).toBe(false);
    await clock.advance(0);
  });
});

it.each([
  [200, [FIRST]],
  [404, [FIRST]],
  [403, [FIRST]],
  [429, []],
  [500, []],
])('an answer %i marks the token as accepted: %j', (status, accepts) => {
  const { bearer, upstream } = serve(get('/'));
  upstream().bring(answer(status));
  expect(bearer.accepts).toEqual(accepts);
});

it('trailers of an answer are passed on', () => {
  const { app, upstream } = serve(get('/'));
  upstream().bring(`${message('HTTP/1.1 200 OK', [CHUNKED])}${chunk('a')}0\r\nX: y\r\n\r\n`);
  expect(app.text.endsWith(`${chunk('a')}0\r\nX: y\r\n\r\n`)).toBe(true);
});
