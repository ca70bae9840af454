import { describe, expect, it } from 'vitest';
import { FakeBearer, FIRST, withoutToken } from './fake-bearer.ts';
import { get, ok, post } from './messages.ts';
import { expectProblem } from './problem.ts';
import { answering, startUpstream } from './raw-upstream.ts';
import { type RouteOverrides, startSidecar } from './sidecar.ts';

describe('without a token', () => {
  it.each([
    ['GET', get('/')],
    ['POST', post('/', 'the body')],
    ['an upgrade', get('/', 'Connection: Upgrade', 'Upgrade: websocket')],
    ["a request with the client's own Authorization", get('/', 'Authorization: Basic YTpi')],
  ])('%s is answered 503 and nothing is sent upstream', async (_, bytes) => {
    const upstream = await startUpstream(answering(ok()));
    const sidecar = await startSidecar({ upstream, bearer: withoutToken() });

    const answer = await sidecar.exchange(bytes);

    expectProblem(answer, 'token_unavailable');
    expect(answer.head.value('retry-after')).toBe('7');
    expect(upstream.text).toBe('');
  });

  it('the next request on the connection is served once there is one', async () => {
    const upstream = await startUpstream(answering(ok('fine')));
    const bearer = withoutToken();
    const sidecar = await startSidecar({ upstream, bearer });
    const client = await sidecar.connect();
    expectProblem(await client.send(get('/1')).response(), 'token_unavailable');

    bearer.held = FIRST;

    expect((await client.send(get('/2')).response()).body).toBe('fine');
    expect(upstream.targets).toEqual(['/2']);
  });

  it('a body that is not read is not taken for the next request', async () => {
    const upstream = await startUpstream(answering(ok()));
    const bearer = withoutToken();
    const sidecar = await startSidecar({ upstream, bearer });
    const client = await sidecar.connect();
    client.send(post('/', get('/smuggled')).slice(0, -10));
    expectProblem(await client.response(), 'token_unavailable');

    bearer.held = FIRST;
    client.send(`${post('/', get('/smuggled')).slice(-10)}${get('/next')}`);

    await client.response().catch(() => client.closed());
    await sidecar.fence();
    expect(upstream.targets).not.toContain('/smuggled');
  });

  it('an unexpected failure of the token source also lets nothing through', async () => {
    const upstream = await startUpstream(answering(ok()));
    const bearer = new FakeBearer({ held: undefined, obtain: () => Promise.reject(new Error('unforeseen')) });
    const sidecar = await startSidecar({ upstream, bearer });

    const answer = await sidecar.exchange(get('/'));

    expect(answer.status).toBeGreaterThanOrEqual(500);
    expect(answer.body).not.toContain('unforeseen');
    expect(upstream.text).toBe('');
  });
});

describe('without a token and with whenTokenUnavailable: passthrough', () => {
  const own = ['Authorization: Basic YTpi'];
  it.each<[string, RouteOverrides, string[], string[]]>([
    ['a request passes without Authorization', {}, [], []],
    ["the client's own is dropped all the same", {}, own, []],
    ["the client's own passes with `keep`", { existingAuthorization: 'keep' }, own, ['Basic YTpi']],
    ['nothing is made up with `keep`', { existingAuthorization: 'keep' }, [], []],
  ])('%s', async (_, route, fields, expected) => {
    const upstream = await startUpstream(answering(ok('anonymous')));
    const bearer = withoutToken();
    const sidecar = await startSidecar({
      upstream,
      bearer,
      route: { whenTokenUnavailable: 'passthrough', ...route },
    });

    expect((await sidecar.exchange(post('/', 'body', ...fields))).body).toBe('anonymous');

    expect(upstream.requests[0]?.head.values('authorization')).toEqual(expected);
    expect((await upstream.requests[0]?.body())?.text).toBe('body');
  });

  it('the token is sent when there is one', async () => {
    const upstream = await startUpstream(answering(ok()));
    const sidecar = await startSidecar({ upstream, route: { whenTokenUnavailable: 'passthrough' } });

    await sidecar.exchange(get('/'));

    expect(upstream.requests[0]?.head.values('authorization')).toEqual([FIRST]);
  });
});

it('with existingAuthorization: keep, a request with its own Authorization needs no token', async () => {
  const upstream = await startUpstream(answering(ok('fine')));
  const bearer = withoutToken();
  const sidecar = await startSidecar({ upstream, bearer, route: { existingAuthorization: 'keep' } });

  expect((await sidecar.exchange(get('/', 'Authorization: Basic YTpi'))).body).toBe('fine');

  expect(bearer.obtained).toBe(0);
});
