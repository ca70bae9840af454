import { describe, expect, it } from 'vitest';
import { CHUNKED, chunk, get, LAST_CHUNK, ok, post, request } from './messages.ts';
import { expectProblem } from './problem.ts';
import type { Answer, RawClient } from './raw-client.ts';
import { answering, inTurn, type RawUpstream, type Script, startUpstream } from './raw-upstream.ts';
import { startSidecar } from './sidecar.ts';

const die: Script = (arrived) => arrived.connection.destroy();

const echo: Script = async (arrived) => {
  arrived.answer(ok(`got ${(await arrived.body()).text}`));
};

/** A client and an upstream between which one request has already passed: its connection is in the pool. */
async function startWarm(...scripts: Script[]): Promise<{ upstream: RawUpstream; client: RawClient }> {
  const upstream = await startUpstream(inTurn(answering(ok('warm')), ...scripts));
  const sidecar = await startSidecar({ upstream, limits: { replayBytes: 16 } });
  const client = await sidecar.connect();
  await client.send(get('/warm')).response();
  return { upstream, client };
}

describe('a request whose reused connection closes before any byte of the answer', () => {
  it.each([
    ['GET', get('/'), 'got '],
    ['DELETE', request('DELETE', '/'), 'got '],
    ['PUT with a small body', request('PUT', '/', [], 'small body'), 'got small body'],
    [
      'PUT with a small chunked body',
      request('PUT', '/', [CHUNKED]) + chunk('small') + LAST_CHUNK,
      'got small',
    ],
    ['POST with an Idempotency-Key', post('/', 'small body', 'Idempotency-Key: "1"'), 'got small body'],
  ])('is sent again once if it is %s', async (_, bytes, body) => {
    const { upstream, client } = await startWarm(async (arrived) => {
      await arrived.body();
      arrived.connection.destroy();
    }, echo);

    expect(await client.send(bytes).response()).toMatchObject({ status: 200, body });

    const [warm, first, second] = upstream.requests;
    expect(upstream.requests).toHaveLength(3);
    expect(first?.connection).toBe(warm?.connection);
    expect(second?.connection).not.toBe(first?.connection);
    expect(second?.head.values('authorization')).toHaveLength(1);
  });

  it.each([
    ['POST', post('/', 'small body')],
    ['POST without a body', request('POST', '/', ['Content-Length: 0'])],
    ['PATCH', request('PATCH', '/', [], 'small body')],
    ['a method not known to be idempotent', request('LINK', '/')],
    ['PUT with a body too large to keep', request('PUT', '/', [], 'x'.repeat(100))],
  ])('is not sent again if it is %s', async (_, bytes) => {
    const { upstream, client } = await startWarm(die, answering(ok('must not be reached')));

    expectProblem(await client.send(bytes).response(), 'upstream_protocol_error');

    expect(upstream.requests).toHaveLength(2);
  });

  it('is sent again only once', async () => {
    const { upstream, client } = await startWarm(die, die, answering(ok('must not be reached')));

    expectProblem(await client.send(get('/')).response(), 'upstream_protocol_error');

    expect(upstream.requests).toHaveLength(3);
  });
});

describe('a request is not sent again', () => {
  it('on a new connection', async () => {
    const upstream = await startUpstream(inTurn(die, answering(ok('must not be reached'))));
    const sidecar = await startSidecar({ upstream });

    expectProblem(await sidecar.exchange(get('/')), 'upstream_protocol_error');

    expect(upstream.requests).toHaveLength(1);
  });

  it.each(['HTTP/1.1 200', 'HTTP/1.1 103 Early Hints\r\n\r\n'])(
    'once its answer has begun with %j',
    async (bytes) => {
      const { upstream, client } = await startWarm(
        (arrived) => {
          arrived.answer(bytes);
          arrived.connection.end();
        },
        answering(ok('must not be reached')),
      );

      const answer: Answer = await client.send(get('/')).response();

      expectProblem(answer, 'upstream_protocol_error');
      expect(upstream.requests).toHaveLength(2);
    },
  );
});
