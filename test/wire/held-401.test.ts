import { describe, expect, it } from 'vitest';
import { settle } from '../support/manual-clock.ts';
import { until } from '../support/until.ts';
import { FakeBearer, FIRST, SECOND } from './fake-bearer.ts';
import { answer, CHUNKED, chunk, get, LAST_CHUNK, message, ok, post, request } from './messages.ts';
import { answering, inTurn, type Script, startUpstream } from './raw-upstream.ts';
import { routeTo, startSidecar } from './sidecar.ts';
import { socketOfSidecar } from './sidecar-socket.ts';

const BODY = 'who are you? '.repeat(50);

/** Answers, and ends the connection in the same piece. */
function lastly(bytes: string): Script {
  return async (arrived) => {
    await arrived.body();
    arrived.answer(bytes);
    arrived.connection.end();
  };
}

const REFUSALS = [
  ['without a body', answer(401, '', 'Connection: close'), ''],
  ['with a body', answer(401, BODY, 'Connection: close'), BODY],
  ['with a body, and no word of closing', answer(401, BODY), BODY],
  ['with a body that ends with the connection', message('HTTP/1.1 401 No', [], BODY), BODY],
  ['with a chunked body', `${message('HTTP/1.1 401 No', [CHUNKED])}${chunk(BODY)}${LAST_CHUNK}`, BODY],
] as const;

const RENEWALS = [
  ['at once', async () => {}],
  ['after a while', settle],
] as const;

describe.each(RENEWALS)('a 401 whose connection ends while another token is requested, %s', (_, pause) => {
  it.each(REFUSALS)('%s, is passed on whole when there is no other token', async (_, refusal, body) => {
    const upstream = await startUpstream(lastly(refusal));
    const bearer = new FakeBearer({
      replace: async () => {
        await pause();
        return undefined;
      },
    });
    const sidecar = await startSidecar({ upstream, bearer });
    const client = await sidecar.connect();

    expect(await client.send(get('/')).response()).toMatchObject({ status: 401, body });
    // What was lost with the connection is not missed by the next request.
    expect(await client.send(post('/', 'x')).response()).toMatchObject({ status: 401, body });
  });

  it.each(REFUSALS)('%s, is replayed when there is another token', async (_, refusal) => {
    const upstream = await startUpstream(inTurn(lastly(refusal), answering(ok('fine'))));
    const bearer = new FakeBearer({
      replace: async () => {
        await pause();
        return SECOND;
      },
    });
    const sidecar = await startSidecar({ upstream, bearer });

    expect(await sidecar.exchange(post('/', 'x'))).toMatchObject({ status: 200, body: 'fine' });

    expect(upstream.requests.map(({ head }) => head.value('authorization'))).toEqual([FIRST, SECOND]);
  });
});

it('a 401 that breaks off while another token is requested is replayed with it', async () => {
  const asked = Promise.withResolvers<void>();
  const renewal = Promise.withResolvers<string>();
  const upstream = await startUpstream(
    inTurn(
      async (arrived) => {
        arrived.answer(message('HTTP/1.1 401 No', ['Content-Length: 1000'], 'who'));
        await asked.promise;
        arrived.connection.reset();
      },
      answering(ok('fine')),
    ),
  );
  const bearer = new FakeBearer({
    replace: () => {
      asked.resolve();
      return renewal.promise;
    },
  });
  const sidecar = await startSidecar({ upstream, bearer });
  const client = await sidecar.connect();
  client.send(get('/'));
  await asked.promise;
  await settle();

  renewal.resolve(SECOND);

  expect((await client.response()).body).toBe('fine');
});

it('bytes received with a held 401 are not overwritten by later reads', async () => {
  const asked = Promise.withResolvers<void>();
  const renewal = Promise.withResolvers<undefined>();
  const bearer = new FakeBearer({
    replace: () => {
      asked.resolve();
      return renewal.promise;
    },
  });
  const upstream = await startUpstream(answering(answer(401, BODY)));
  const other = await startUpstream(answering(ok('x'.repeat(4000), `X-Filler: ${'y'.repeat(4000)}`)));
  const sidecar = await startSidecar({
    bearer,
    routes: [routeTo(other, { name: 'other', match: { pathPrefix: '/other' } }), routeTo(upstream)],
  });
  const client = await sidecar.connect();
  client.send(get('/'));
  await asked.promise;

  for (let times = 0; times < 3; times += 1) await sidecar.exchange(get('/other'));
  renewal.resolve(undefined);

  expect(await client.response()).toMatchObject({ status: 401, body: BODY });
});

it('after a 401 that is passed on, the next request waits until there is a connection for it', async () => {
  const upstream = await startUpstream(
    inTurn(lastly(answer(401, 'no', 'Connection: close')), async (arrived) => {
      arrived.answer(ok((await arrived.body()).text));
    }),
  );
  const sidecar = await startSidecar({
    upstream,
    bearer: new FakeBearer({ replace: async () => undefined }),
  });
  const client = await sidecar.connect();
  // More than is kept to be sent again.
  const body = 'x'.repeat(5000);
  client.send(get('/') + post('/', body));

  expect((await client.response()).status).toBe(401);
  expect((await client.response()).body).toBe(body);
});

it('a 401 passed on amid an upload lets the app continue with the upload', async () => {
  const upstream = await startUpstream((arrived) => arrived.answer(answer(401, BODY)));
  const asked = Promise.withResolvers<void>();
  const renewal = Promise.withResolvers<undefined>();
  const bearer = new FakeBearer({
    replace: () => {
      asked.resolve();
      return renewal.promise;
    },
  });
  const sidecar = await startSidecar({ upstream, bearer });
  const client = await sidecar.connect();
  const rest = 'x'.repeat(900);
  client.send(`${request('POST', '/', ['Content-Length: 1000'])}${'x'.repeat(100)}`);
  await asked.promise;
  // The app reads nothing before it has sent everything, and what it is sent is more than the system takes.
  const accepted = socketOfSidecar(client);
  accepted.cork();
  const before = accepted.bytesRead;
  client.send(rest);

  renewal.resolve(undefined);

  await until(() => accepted.bytesRead === before + rest.length);
  accepted.uncork();
  expect(await client.response()).toMatchObject({ status: 401, body: BODY });
});
