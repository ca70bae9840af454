import { describe, expect, it } from 'vitest';
import { SidecarError } from '../../../src/platform/errors.ts';
import { FakeBearer } from '../../wire/fake-bearer.ts';
import { CHUNKED, get, message, ok, request } from '../../wire/messages.ts';
import { serve } from './ported-transaction.ts';

const expecting = (...fields: string[]) =>
  request('POST', '/', ['Expect: 100-continue', 'Content-Length: 5', ...fields]);

describe('admission', () => {
  it.each([
    ['nothing', get('/x'), false],
    ['no more than 64 KiB', request('POST', '/x', ['Content-Length: 65536']), false],
    ['more', request('POST', '/x', ['Content-Length: 65537']), true],
    ['chunks without end', request('POST', '/x', [CHUNKED]), true],
    [
      'a body announced with Expect',
      request('POST', '/x', ['Expect: 100-continue', 'Content-Length: 5']),
      true,
    ],
    ['nothing, with Connection: close', get('/x', 'Connection: close'), true],
  ])('refuses a request that could be followed by %s, and closes the connection: %s', (_, bytes, last) => {
    const { app } = serve(bytes, { route: { match: { pathPrefix: '/api' } } });
    expect(app.text).toMatch(/^HTTP\/1\.1 404 /);
    expect(app.ended).toEqual({ last, timeoutMs: 7000 });
    expect(app.text.includes('connection: close\r\n')).toBe(last);
  });
});

describe('an interim answer', () => {
  const HINTS = message('HTTP/1.1 103 Early Hints', ['Link: </x>', 'Connection: close2']);
  const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';

  it('is passed on without connection fields', () => {
    const { app, upstream } = serve(get('/'));
    upstream().bring(HINTS);
    expect(app.text).toBe('HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n');
    upstream().bring(ok('x'));
    expect(app.text).toContain('200');
  });

  it('100 is passed on once to a client that asked for it', () => {
    const { app, upstream, stream } = serve(expecting());
    expect(stream.awaitsContinue).toBe(true);
    upstream().bring(CONTINUE);
    upstream().bring(CONTINUE);
    expect(app.text).toBe(CONTINUE);
    expect(stream.awaitsContinue).toBe(false);
    const unasked = serve(request('POST', '/', ['Content-Length: 5']));
    unasked.upstream().bring(CONTINUE);
    expect(unasked.app.text).toBe('');
  });

  it.each([
    ['in another case', request('POST', '/', ['expect: 100-CONTINUE', 'Content-Length: 1']), true],
    ['of something else', request('POST', '/', ['Expect: 200-ok', 'Content-Length: 1']), false],
    ['without a body', get('/', 'Expect: 100-continue'), false],
    ['by HTTP/1.0', message('POST / HTTP/1.0', ['Expect: 100-continue', 'Content-Length: 1']), false],
  ])('100 is awaited %s: %s %s', (_, bytes, awaits) => {
    expect(serve(bytes).stream.awaitsContinue).toBe(awaits);
  });
});

describe('an answer', () => {
  it('before a body that was never asked for closes the connection', () => {
    const { app, upstream } = serve(expecting());
    upstream().bring(ok('x'));
    expect(app.text.endsWith('connection: close\r\n\r\nx')).toBe(true);
    expect(app.ended?.last).toBe(true);
  });

  it('of the proxy replaces what was gathered of another', () => {
    const { app, transaction, upstream, metric } = serve(get('/'));
    app.writer.text('HTTP/1.1 103 Gathered');
    upstream().bring('SSH-2.0\r\n\r\n');
    expect(app.text).toMatch(/^HTTP\/1\.1 502 /);
    expect(transaction.answered).toBe(true);
    return metric('errors_total{route="api",error="upstream_protocol_error"}').then((count) =>
      expect(count).toBe(1),
    );
  });

  it('that is cut is flushed, counted by its status, and cut once', async () => {
    const { app, transaction, upstream, metric, clock } = serve(get('/'));
    upstream().bring(message('HTTP/1.1 200 OK', ['Content-Length: 9'], 'some'));
    upstream().connection.socket.emit('end');
    expect(app.cutBy).toBe('end');
    expect(app.text.endsWith('some')).toBe(true);
    app.cutBy = undefined;
    transaction.fail(new SidecarError('upstream_timeout', 'nothing moved'));
    expect(app.cutBy).toBeUndefined();
    transaction.settle(clock.monotonicMs());
    expect(await metric('requests_total{route="api",method="GET",code="200"}')).toBe(1);
    expect(await metric('errors_total{route="api",error="upstream_protocol_error"}')).toBe(1);
  });
});

describe('an app that leaves while its request waits', () => {
  const never = () => new Promise<never>(() => {});

  it('stops the wait for a token', async () => {
    const bearer = new FakeBearer({ held: undefined, obtain: never });
    const { transaction } = serve(get('/'), { bearer });
    const [waiter] = bearer.waiters;
    expect(waiter?.gone?.aborted).toBe(false);
    transaction.appGone();
    expect(waiter?.gone?.aborted).toBe(true);
  });

  it('stops the wait for another token after a 401', async () => {
    const bearer = new FakeBearer({ replace: never });
    const { transaction, upstream } = serve(get('/'), { bearer });
    upstream().bring(message('HTTP/1.1 401 Unauthorized', ['Content-Length: 0']));
    const [waiter] = bearer.waiters;
    expect(waiter?.gone?.aborted).toBe(false);
    transaction.appGone();
    expect(waiter?.gone?.aborted).toBe(true);
  });
});
