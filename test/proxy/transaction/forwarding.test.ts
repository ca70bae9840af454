import { describe, expect, it } from 'vitest';
import { settle } from '../../support/manual-clock.ts';
import { FakeBearer, FIRST, renewable, SECOND, withoutToken } from '../../wire/fake-bearer.ts';
import { answer, CHUNKED, chunk, get, message, request } from '../../wire/messages.ts';
import { serve } from './ported-transaction.ts';

const POST = request('POST', '/', ['Content-Length: 5']);
const sent = (text: string, name: string) =>
  text.split('\r\n').flatMap((line) => (line.startsWith(`${name}: `) ? [line.slice(name.length + 2)] : []));

describe('a request when a token is held', () => {
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
