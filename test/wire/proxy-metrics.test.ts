import { describe, expect, it } from 'vitest';
import { withoutToken } from './fake-bearer.ts';
import { answer, CHUNKED, chunk, get, message, ok, post, request } from './messages.ts';
import { answering, startUpstream } from './raw-upstream.ts';
import { routeTo, type Sidecar, startSidecar } from './sidecar.ts';

/** Asserts that one request was counted, with these labels, and that nothing is left in flight. */
async function expectOne(
  sidecar: Sidecar,
  labels: { route: string; method: string; code: string },
): Promise<void> {
  await sidecar.idle();
  expect(await sidecar.metric('proxy_requests_total', labels)).toBe(1);
  expect(await sidecar.metric('proxy_requests_total')).toBe(1);
  expect(await sidecar.metric('proxy_request_duration_seconds', { route: labels.route })).toBe(1);
}

describe('a request is counted once, when it ends', () => {
  it.each([
    ['GET', get('/'), ok('x'), 'GET', '200'],
    ['POST', post('/', 'body'), answer(201), 'POST', '201'],
    ['an error of the upstream', get('/'), answer(500, 'oops'), 'GET', '500'],
    ["a method beyond HTTP's own", request('MKCOL', '/'), ok(), '_OTHER', '200'],
    ['an answer with interim ones', get('/'), `${message('HTTP/1.1 103 Early', [])}${ok()}`, 'GET', '200'],
  ])('%s', async (_, sent, answered, method, code) => {
    const upstream = await startUpstream(answering(answered));
    const sidecar = await startSidecar({ upstream });

    await sidecar.exchange(sent);

    await expectOne(sidecar, { route: 'api', method, code });
    expect(await sidecar.metric('proxy_errors_total')).toBe(0);
  });

  it('and is in flight until then', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();
    client.send(get('/'));
    const arrived = await upstream.request();
    arrived.answer(message('HTTP/1.1 200 OK', ['Content-Length: 2'], 'o'));
    await client.received.contains('\r\n\r\no');

    expect(await sidecar.metric('proxy_requests_in_flight', { route: 'api' })).toBe(1);
    expect(await sidecar.metric('proxy_requests_total')).toBe(0);
    arrived.answer('k');
    await client.response();

    await expectOne(sidecar, { route: 'api', method: 'GET', code: '200' });
  });

  it.each(['destroy', 'resetAndDestroy'] as const)(
    'with 499 when the app left before the answer (%s)',
    async (how) => {
      const upstream = await startUpstream();
      const sidecar = await startSidecar({ upstream });
      const client = await sidecar.connect();
      client.send(get('/'));
      await upstream.request();

      client.socket[how]();

      await expectOne(sidecar, { route: 'api', method: 'GET', code: '499' });
    },
  );

  it('with its status when the app left amid the answer', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();
    client.send(get('/'));
    const arrived = await upstream.request();
    arrived.answer(message('HTTP/1.1 200 OK', [CHUNKED], chunk('some')));
    await client.received.contains('some');

    client.destroy();

    await expectOne(sidecar, { route: 'api', method: 'GET', code: '200' });
  });
});

describe('the upstream metrics', () => {
  it('measure each attempt apart from the whole answer', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();
    client.send(get('/'));
    const arrived = await upstream.request();
    arrived.answer(message('HTTP/1.1 200 OK', ['Content-Length: 2'], 'o'));
    await client.received.contains('\r\n\r\no');

    expect(await sidecar.metric('proxy_upstream_duration_seconds', { route: 'api' })).toBe(1);
    expect(await sidecar.metric('proxy_request_duration_seconds')).toBe(0);
    arrived.answer('k');
    await client.response();
  });

  it('count a connection once, however many requests it carries', async () => {
    const upstream = await startUpstream(answering(ok('x')));
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();
    for (let count = 0; count < 3; count++) await client.send(get('/')).response();

    expect(await sidecar.metric('proxy_upstream_duration_seconds', { route: 'api' })).toBe(3);
    expect(await sidecar.metric('proxy_upstream_connections_total', { route: 'api' })).toBe(1);
    expect(await sidecar.metric('proxy_upstream_tls_handshakes_total')).toBe(
      upstream.protocol === 'https' ? 1 : 0,
    );
  });
});

describe('an error of the sidecar is counted with its code', () => {
  it('for its route', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream, bearer: withoutToken() });

    await sidecar.exchange(get('/'));

    await expectOne(sidecar, { route: 'api', method: 'GET', code: '503' });
    expect(await sidecar.metric('proxy_errors_total', { route: 'api', error: 'token_unavailable' })).toBe(1);
    expect(await sidecar.metric('proxy_errors_total')).toBe(1);
  });

  it('for no route', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ routes: [routeTo(upstream, { match: { pathPrefix: '/api' } })] });

    await sidecar.exchange(get('/other'));

    await expectOne(sidecar, { route: 'none', method: 'GET', code: '404' });
    expect(await sidecar.metric('proxy_errors_total', { route: 'none', error: 'route_not_found' })).toBe(1);
  });

  it('when the request could not be read', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });

    await sidecar.exchange(get('/', 'X : y'));

    await sidecar.idle();
    expect(await sidecar.metric('proxy_errors_total', { route: 'none', error: 'bad_request' })).toBe(1);
  });

  it('when the upstream broke off', async () => {
    const upstream = await startUpstream((arrived) => arrived.connection.destroy());
    const sidecar = await startSidecar({ upstream });

    await sidecar.exchange(get('/'));

    await expectOne(sidecar, { route: 'api', method: 'GET', code: '502' });
    expect(
      await sidecar.metric('proxy_errors_total', { route: 'api', error: 'upstream_protocol_error' }),
    ).toBe(1);
  });
});
