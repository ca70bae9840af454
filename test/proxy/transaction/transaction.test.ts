import { describe, expect, it } from 'vitest';
import { SidecarError } from '../../../src/platform/errors.ts';
import { FakeBearer } from '../../wire/fake-bearer.ts';
import { CHUNKED, chunk, get, LAST_CHUNK, message, ok, request } from '../../wire/messages.ts';
import { type Ports, serve } from './ported-transaction.ts';

const expecting = (...fields: string[]) =>
  request('POST', '/', ['Expect: 100-continue', 'Content-Length: 5', ...fields]);

describe('admission', () => {
  const own = get('/', 'authorization: Basic x');
  it.each<[string, string, Ports, number, string]>([
    ['draining', get('/'), { phase: 'finishing' }, 503, 'none'],
    ['loop_detected', get('/', 'token-sidecar-hop: me'), {}, 508, 'none'],
    ['route_not_found', get('/'), { route: { match: { pathPrefix: '/api' } } }, 404, 'none'],
    ['authorization_not_allowed', own, { route: { existingAuthorization: 'reject' } }, 403, 'api'],
    [
      'request_too_large',
      request('POST', '/', ['Content-Length: 6']),
      { limits: { requestBodyBytes: 5 } },
      413,
      'api',
    ],
    ['overloaded', get('/'), { limits: { maxInFlight: 2 }, inFlight: 2 }, 503, 'api'],
  ])('refuses a request with %s', async (code, bytes, ports, status, route) => {
    const { app, asked, transaction, clock, load, metric } = serve(bytes, ports);
    expect(app.text).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(app.text).toContain(`token-sidecar-error: ${code}\r\n`);
    expect(asked).toEqual([]);
    expect(await metric(`errors_total{route="${route}",error="${code}"}`)).toBe(1);
    transaction.settle(clock.monotonicMs());
    expect(load.inFlight).toBe(ports.inFlight ?? 0);
    expect(await metric(`requests_in_flight{route="${route}"}`)).toBe(0);
    const method = bytes.slice(0, bytes.indexOf(' '));
    expect(await metric(`requests_total{route="${route}",method="${method}",code="${status}"}`)).toBe(1);
  });

  it.each<[string, string, Ports]>([
    ['with Authorization that is replaced', get('/', 'authorization: Basic x'), {}],
    [
      'without Authorization if that would be refused',
      get('/'),
      { route: { existingAuthorization: 'reject' } },
    ],
    ['that passed another sidecar', get('/', 'token-sidecar-hop: other'), {}],
    [
      'of exactly the maximal size',
      request('POST', '/', ['Content-Length: 5']),
      { limits: { requestBodyBytes: 5 } },
    ],
    ['of any size if there is no limit', request('POST', '/', ['Content-Length: 99999999']), {}],
    ['when one more is allowed in flight', get('/'), { limits: { maxInFlight: 2 }, inFlight: 1 }],
  ])('lets a request pass %s', async (_, bytes, ports) => {
    const { app, asked, load, metric } = serve(bytes, ports);
    expect(app.text).toBe('');
    expect(asked).toHaveLength(1);
    expect(load.inFlight).toBe((ports.inFlight ?? 0) + 1);
    expect(await metric('requests_in_flight{route="api"}')).toBe(1);
  });

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

describe('a request body', () => {
  it('that exceeds the limit ends the request', () => {
    const { app, transaction } = serve(request('POST', '/', [CHUNKED]), { limits: { requestBodyBytes: 5 } });
    transaction.takeBody(Buffer.from('12345'));
    expect(() => transaction.takeBody(Buffer.from('6'))).toThrow(
      expect.objectContaining({ code: 'request_too_large' }),
    );
    expect(app.text).toBe('');
  });

  it('that comes after the answer is dropped', () => {
    const { upstream, send, stream, transaction } = serve(request('POST', '/', ['Content-Length: 5']));
    upstream().bring(ok('early'));
    const before = upstream().sent;
    send('hello', { end: true });
    transaction.onDownstreamDrain();
    expect(upstream().sent).toBe(before);
    expect(stream.requestComplete).toBe(true);
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

  it('is not sent to a client of HTTP/1.0', () => {
    const { app, upstream } = serve(message('GET / HTTP/1.0', ['Host: app.test']));
    upstream().bring(HINTS);
    expect(app.text).toBe('');
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
  it.each<[string, string, string, string, boolean]>([
    ['its length', get('/'), ok('x'), 'Content-Length: 1\r\n\r\nx', false],
    [
      'chunks',
      get('/'),
      `${message('HTTP/1.1 200 OK', [CHUNKED])}${chunk('x')}${LAST_CHUNK}`,
      `transfer-encoding: chunked\r\n\r\n${chunk('x')}${LAST_CHUNK}`,
      false,
    ],
    [
      'the end of the connection, for HTTP/1.0',
      message('GET / HTTP/1.0', ['Host: a']),
      `${message('HTTP/1.1 200 OK', [CHUNKED])}${chunk('x')}${LAST_CHUNK}`,
      'connection: close\r\n\r\nx',
      true,
    ],
    [
      'nothing, for HEAD',
      request('HEAD', '/'),
      ok('').replace(': 0', ': 7'),
      'Content-Length: 7\r\n\r\n',
      false,
    ],
    [
      'nothing, as 205',
      request('POST', '/'),
      `${message('HTTP/1.1 205 Reset', [CHUNKED])}${chunk('x')}${LAST_CHUNK}`,
      'content-length: 0\r\n\r\n',
      false,
    ],
    [
      'its length, and then no more',
      get('/', 'Connection: close'),
      ok('x'),
      'connection: close\r\n\r\nx',
      true,
    ],
    [
      'its length, when the body was never asked for',
      expecting(),
      ok('x'),
      'connection: close\r\n\r\nx',
      true,
    ],
  ])('is delimited by %s', (_, bytes, comes, ends, last) => {
    const { app, upstream } = serve(bytes);
    upstream().bring(comes);
    expect(app.text.endsWith(ends)).toBe(true);
    expect(app.text.includes('connection: close')).toBe(last);
    expect(app.ended).toEqual({ last, timeoutMs: 10_000 });
  });

  it('that ends while the proxy drains is the last on its connection', () => {
    const { app, load, upstream } = serve(get('/'));
    load.phase = 'finishing';
    upstream().bring(ok('x'));
    expect(app.ended?.last).toBe(true);
    expect(app.text).toContain('connection: close\r\n');
  });

  it('is in one of three states: awaited, begun, whole', () => {
    const { transaction, upstream } = serve(get('/'));
    const state = () => [transaction.begun, transaction.answered, transaction.over];
    expect(state()).toEqual([false, false, false]);
    upstream().bring(message('HTTP/1.1 200 OK', ['Content-Length: 2'], 'x'));
    expect(state()).toEqual([true, false, false]);
    upstream().bring('y');
    expect(state()).toEqual([true, true, true]);
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

it('an app that leaves ends its request, counted once as 499', async () => {
  const { transaction, upstream, load, metric, clock } = serve(get('/'));
  await clock.advance(1500);
  transaction.appGone();
  transaction.appGone();
  expect(upstream().connection.socket.destroyed).toBe(true);
  expect(load.inFlight).toBe(0);
  expect(await metric('requests_total{route="api",method="GET",code="499"}')).toBe(1);
  expect(await metric('request_duration_seconds_sum{route="api",code="4xx"}')).toBe(1.5);
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

it('a request with Max-Forwards: 0 is answered by the sidecar', async () => {
  const { app, asked, transaction, clock, metric } = serve(request('OPTIONS', '/', ['Max-Forwards: 0']));
  expect(app.text).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  expect(app.ended?.last).toBe(false);
  expect(asked).toEqual([]);
  transaction.settle(clock.monotonicMs());
  expect(await metric('requests_total{route="api",method="OPTIONS",code="200"}')).toBe(1);
});

it('an unexpected failure is logged and answered without its message', () => {
  const { app, lines } = serve(get('/'), { bearer: new FakeBearer({ held: 'Bearer a\r\nb' }) });
  expect(app.text).toMatch(/^HTTP\/1\.1 500 /);
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ level: 'warn', route: 'api', error: 'internal' });
  const refused = serve(get('/'), { phase: 'finishing' });
  expect(refused.lines).toEqual([]);
});
