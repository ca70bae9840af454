import { describe, expect, it } from 'vitest';
import { FakeBearer, FIRST, renewable, SECOND, withoutToken } from './fake-bearer.ts';
import { answer, CHUNKED, chunk, get, LAST_CHUNK, message, ok, post, request } from './messages.ts';
import { answering, inTurn, type Script, startUpstream } from './raw-upstream.ts';
import { type RouteOverrides, type SidecarSettings, startSidecar } from './sidecar.ts';

const REFUSAL = answer(401, 'who are you', 'WWW-Authenticate: Bearer error="invalid_token"');

/** Refuses the first token with 401, and answers any other with the body it got. */
const guarded: Script = async (arrived) => {
  const { text } = await arrived.body();
  arrived.answer(arrived.head.value('authorization') === FIRST ? REFUSAL : ok(`got ${text}`));
};

async function start(settings: SidecarSettings = {}, script: Script = guarded) {
  const upstream = await startUpstream(script);
  const bearer = settings.bearer instanceof FakeBearer ? settings.bearer : renewable();
  const sidecar = await startSidecar({ upstream, bearer, ...settings });
  const replays = (result: string): Promise<number> => sidecar.metric('proxy_replays_total', { result });
  return { upstream, bearer, sidecar, replays };
}

describe('a 401 is replayed with another token', () => {
  it.each([
    ['GET', get('/a?b'), 'got '],
    ['POST with a small body', post('/', 'small body'), 'got small body'],
    ['POST with a body as large as is kept', post('/', 'x'.repeat(1024)), `got ${'x'.repeat(1024)}`],
    [
      'POST with a small chunked body',
      request('POST', '/', [CHUNKED]) + chunk('sm') + chunk('all') + LAST_CHUNK,
      'got small',
    ],
    ['POST with an empty body', post('/', ''), 'got '],
    ['POST with Expect', `${request('POST', '/', ['Expect: 100-continue'], 'small')}`, 'got small'],
  ])('%s', async (_, bytes, body) => {
    const { upstream, bearer, sidecar, replays } = await start();

    const answered = await sidecar.exchange(bytes);

    expect(answered).toMatchObject({ status: 200, body });
    expect(answered.head.names).not.toContain('www-authenticate');
    expect(upstream.requests.map(({ head }) => head.values('authorization'))).toEqual([[FIRST], [SECOND]]);
    const [first, second] = upstream.requests;
    expect(second?.head.startLine).toBe(first?.head.startLine);
    expect(bearer.refused).toEqual([FIRST]);
    await sidecar.idle();
    expect([await replays('success'), await replays('failure')]).toEqual([1, 0]);
    expect(await sidecar.metric('proxy_upstream_unauthorized_total', { route: 'api' })).toBe(1);
    expect(await sidecar.metric('proxy_requests_total')).toBe(1);
  });

  it('if its body is long and chunked, and the app sees none of it', async () => {
    const refusal = `${message('HTTP/1.1 401 No', [CHUNKED])}${chunk('refused'.repeat(100_000))}${LAST_CHUNK}`;
    const { sidecar } = await start({}, inTurn(answering(refusal), answering(ok('fine'))));
    const client = await sidecar.connect();

    expect((await client.send(get('/')).response()).body).toBe('fine');
    expect((await client.send(get('/')).response()).body).toBe('fine');

    expect(client.received.text).not.toContain('refused');
  });

  it('if its body never ends', async () => {
    const endless = message('HTTP/1.1 401 No', [CHUNKED], chunk('refused'));
    const { sidecar } = await start({}, inTurn(answering(endless), answering(ok('fine'))));

    expect((await sidecar.exchange(get('/'))).body).toBe('fine');
  });

  it('if its connection closes', async () => {
    const { sidecar } = await start(
      {},
      inTurn(
        (arrived) => {
          arrived.answer(message('HTTP/1.1 401 No', []));
          arrived.connection.end();
        },
        answering(ok('fine')),
      ),
    );

    expect((await sidecar.exchange(get('/'))).body).toBe('fine');
  });

  it('for several requests at once', async () => {
    const renewal = Promise.withResolvers<string>();
    const bearer = new FakeBearer({
      replace: () => {
        if (bearer.refused.length === 5) {
          bearer.held = SECOND;
          renewal.resolve(SECOND);
        }
        return renewal.promise;
      },
    });
    const { upstream, sidecar } = await start({ bearer });

    const answers = await Promise.all(Array.from({ length: 5 }, () => sidecar.exchange(get('/'))));

    expect(answers.map(({ body }) => body)).toEqual(Array(5).fill('got '));
    expect(upstream.requests).toHaveLength(10);
  });

  it('only once: the second 401 is passed on and counted as a failure', async () => {
    const { upstream, bearer, sidecar, replays } = await start({}, answering(REFUSAL));

    expect(await sidecar.exchange(get('/'))).toMatchObject({ status: 401, body: 'who are you' });

    expect(upstream.requests).toHaveLength(2);
    expect(bearer.refused).toEqual([FIRST]);
    await sidecar.idle();
    expect([await replays('success'), await replays('failure')]).toEqual([0, 1]);
  });

  it('for an upgrade', async () => {
    const switched = message('HTTP/1.1 101 Switching Protocols', ['Connection: Upgrade', 'Upgrade: raw']);
    const { upstream, sidecar } = await start({}, inTurn(answering(REFUSAL), answering(switched)));

    const answered = await sidecar.exchange(get('/', 'Connection: Upgrade', 'Upgrade: raw'));

    expect(answered.status).toBe(101);
    expect(upstream.requests.map(({ head }) => [head.value('authorization'), head.value('upgrade')])).toEqual(
      [
        [FIRST, 'raw'],
        [SECOND, 'raw'],
      ],
    );
  });
});

describe('a 401 is passed on unchanged', () => {
  const own = ['Authorization: Basic YTpi'];
  it.each<[string, SidecarSettings & { fields?: string[]; body?: string }]>([
    ['when the body is too large to keep', { body: 'x'.repeat(1025) }],
    ['when there is no other token', { bearer: new FakeBearer({ replace: async () => undefined }) }],
    ['when the other token is the same', { bearer: new FakeBearer({ replace: async () => FIRST }) }],
    ['when the route says so', { route: { retryOn401: false } }],
    [
      "when it refuses the client's own Authorization",
      { route: { existingAuthorization: 'keep' }, fields: own },
    ],
    ['when no token was sent', { route: { whenTokenUnavailable: 'passthrough' }, bearer: withoutToken() }],
  ])('%s', async (_, { fields = [], body, ...settings }) => {
    const { upstream, sidecar, replays } = await start(settings, answering(REFUSAL));

    const answered = await sidecar.exchange(request('POST', '/', fields, body));

    expect(answered).toMatchObject({ status: 401, body: 'who are you' });
    expect(answered.head.value('www-authenticate')).toBe('Bearer error="invalid_token"');
    expect(upstream.requests).toHaveLength(1);
    expect((await replays('success')) + (await replays('failure'))).toBe(0);
  });

  it.each<[string, RouteOverrides, string[]]>([
    ['the route says so', { retryOn401: false }, []],
    [
      "it refuses the client's own Authorization",
      { existingAuthorization: 'keep' },
      ['Authorization: Basic YTpi'],
    ],
  ])('and the token is not renewed when %s', async (_, route, fields) => {
    const { bearer, sidecar } = await start({ route }, answering(REFUSAL));

    await sidecar.exchange(get('/', ...fields));

    expect(bearer.refused).toEqual([]);
  });
});

it('a 401 to a request whose body was too large to keep renews the token for later requests', async () => {
  const { bearer, sidecar } = await start({}, answering(REFUSAL));

  expect((await sidecar.exchange(post('/', 'x'.repeat(1025)))).status).toBe(401);

  expect(bearer.refused).toEqual([FIRST]);
});

describe('the token source learns that a token was accepted', () => {
  it.each([
    [200, true],
    [302, true],
    [403, true],
    [404, true],
    [400, false],
    [429, false],
    [500, false],
    [503, false],
  ])('from status %i: %s', async (status, proof) => {
    const { bearer, sidecar } = await start({}, answering(answer(status, 'so')));

    expect((await sidecar.exchange(get('/'))).status).toBe(status);

    expect(bearer.accepts).toEqual(proof ? [FIRST] : []);
  });

  it('from the answer to the replay, for the token of the replay', async () => {
    const { bearer, sidecar } = await start();

    await sidecar.exchange(get('/'));

    expect(bearer.accepts).toEqual([SECOND]);
  });

  it('never from a 401', async () => {
    const { bearer, sidecar } = await start({}, answering(REFUSAL));

    await sidecar.exchange(get('/'));

    expect(bearer.accepts).toEqual([]);
  });
});

describe('a 401 at an unlucky moment', () => {
  it('amid the upload leads to a complete replay or to none', async () => {
    const { upstream, sidecar } = await start(
      {},
      inTurn(
        (arrived) => arrived.answer(REFUSAL),
        async (arrived) => arrived.answer(ok(`got ${(await arrived.body()).text}`)),
      ),
    );
    const client = await sidecar.connect();
    client.send(`${request('POST', '/', ['Content-Length: 10', 'Connection: close'])}hello`);
    await upstream.request();

    client.send('world');

    const answered = await client.response();
    expect(answered.body).toBe(answered.status === 200 ? 'got helloworld' : 'who are you');
  });

  it('is not replayed if the app left during the renewal', async () => {
    const renewal = Promise.withResolvers<string>();
    const asked = Promise.withResolvers<void>();
    const bearer = new FakeBearer({
      replace: () => {
        asked.resolve();
        return renewal.promise;
      },
    });
    const { upstream, sidecar } = await start({ bearer });
    const client = await sidecar.connect();
    client.send(get('/left'));
    await asked.promise;

    client.destroy();
    await sidecar.idle();
    bearer.held = SECOND;
    renewal.resolve(SECOND);

    await sidecar.fence();
    expect(upstream.targets).toEqual(['/left', '/fence']);
  });
});
