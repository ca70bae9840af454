import { describe, expect, it } from 'vitest';
import { get, post } from '../messages.ts';
import { expectProblem } from '../problem.ts';
import { startSidecar } from '../sidecar.ts';
import {
  CODE,
  dataFrame,
  type FrameConnection,
  type FrameUpstream,
  startFrames,
  TYPE,
} from './frame-upstream.ts';
import { HTTP2 } from './node-upstream.ts';

async function start(replayBytes = 1024) {
  const upstream = await startFrames();
  const sidecar = await startSidecar({ upstream, route: { protocol: HTTP2 }, limits: { replayBytes } });
  return { upstream, sidecar };
}

/** The next connection, and the stream of the first request on it. */
async function asked(upstream: FrameUpstream): Promise<[FrameConnection, number]> {
  const connection = await upstream.connection();
  return [connection, (await connection.next(TYPE.HEADERS)).streamId];
}

const REQUESTS = [
  ['GET', get('/'), ''],
  ['POST', post('/', 'body'), 'body'],
] as const;

it('a GET reset with ENHANCE_YOUR_CALM uses another connection, as do later requests', async () => {
  const { upstream, sidecar } = await start();
  const answer = sidecar.exchange(get('/'));
  const [first, streamId] = await asked(upstream);

  first.reset(streamId, CODE.ENHANCE_YOUR_CALM);

  const [second, again] = await asked(upstream);
  second.answer(again, 'calm');
  expect((await answer).body).toBe('calm');
  const later = sidecar.exchange(post('/', 'body'));
  const { streamId: third } = await second.next(TYPE.HEADERS);
  second.answer(third, 'later');
  expect((await later).body).toBe('later');
});

describe.each(REQUESTS)(
  '%s that the upstream did not process is sent on another connection',
  (_, bytes, body) => {
    it('after REFUSED_STREAM', async () => {
      const { upstream, sidecar } = await start();
      const answer = sidecar.exchange(bytes);
      const [first, streamId] = await asked(upstream);

      first.reset(streamId, CODE.REFUSED_STREAM);

      const [second, again] = await asked(upstream);
      expect(await second.data(again, body.length)).toBe(body);
      second.answer(again, 'served');
      expect(await answer).toMatchObject({ status: 200, body: 'served' });
    });

    it('after GOAWAY, while an earlier request is answered on the old connection', async () => {
      const { upstream, sidecar } = await start();
      const early = sidecar.exchange(get('/early'));
      const [first, earlyId] = await asked(upstream);
      const late = sidecar.exchange(bytes);
      const { streamId: lateId } = await first.next(TYPE.HEADERS);
      expect(lateId).toBeGreaterThan(earlyId);

      first.goaway(earlyId, CODE.NO_ERROR);

      const [second, again] = await asked(upstream);
      expect(await second.data(again, body.length)).toBe(body);
      second.answer(again, 'late');
      expect((await late).body).toBe('late');
      first.answer(earlyId, 'early');
      expect((await early).body).toBe('early');
      await first.closed();
    });
  },
);

describe('a request that was refused with REFUSED_STREAM is not sent again', () => {
  it('more than once', async () => {
    const { upstream, sidecar } = await start();
    const answer = sidecar.exchange(get('/'));
    for (const _ of [1, 2]) {
      const [connection, streamId] = await asked(upstream);
      connection.reset(streamId, CODE.REFUSED_STREAM);
    }

    expectProblem(await answer, 'upstream_protocol_error');
    expect((await answer).body).toContain('REFUSED_STREAM');
    expect(upstream.connections).toHaveLength(2);
  });

  it('if its body was too large to keep', async () => {
    const { upstream, sidecar } = await start(2);
    const answer = sidecar.exchange(post('/', 'too large'));
    const [connection, streamId] = await asked(upstream);

    connection.reset(streamId, CODE.REFUSED_STREAM);

    expectProblem(await answer, 'upstream_protocol_error');
    expect(upstream.connections).toHaveLength(1);
  });

  it.each([CODE.CANCEL, CODE.NO_ERROR, 0x2, 0xbeef])('if the code is a different one: %i', async (code) => {
    const { upstream, sidecar } = await start();
    const answer = sidecar.exchange(get('/'));
    const [connection, streamId] = await asked(upstream);

    connection.reset(streamId, code);

    expectProblem(await answer, 'upstream_protocol_error');
    const next = sidecar.exchange(get('/'));
    connection.answer((await connection.next(TYPE.HEADERS)).streamId, 'next');
    expect((await next).body).toBe('next');
  });
});

describe('a request whose answer has begun is not sent again', () => {
  it.each([
    [
      'REFUSED_STREAM',
      (connection: FrameConnection, id: number) => connection.reset(id, CODE.REFUSED_STREAM),
    ],
    ['GOAWAY', (connection: FrameConnection) => connection.goaway(0, CODE.NO_ERROR)],
  ])('after %s: the app sees that the answer is incomplete', async (_, takeBack) => {
    const { upstream, sidecar } = await start();
    const client = await sidecar.connect();
    client.send(get('/'));
    const [connection, streamId] = await asked(upstream);
    connection.answer(streamId);
    connection.send(dataFrame(streamId, 'first', false));
    const head = await client.head();

    takeBack(connection, streamId);

    await expect(client.body(head)).rejects.toThrow();
    await sidecar.idle();
    expect(upstream.connections).toHaveLength(1);
  });
});

describe('a connection that breaks with requests on it', () => {
  /** Upstream and sidecar between which one request has passed. */
  async function startWarm() {
    const { upstream, sidecar } = await start();
    const warm = sidecar.exchange(get('/warm'));
    const [connection, streamId] = await asked(upstream);
    connection.answer(streamId, 'warm');
    await warm;
    return { upstream, sidecar, connection };
  }

  it('has the repeatable ones sent again, and the others fail', async () => {
    const { upstream, sidecar, connection } = await startWarm();
    const read = sidecar.exchange(get('/'));
    await connection.next(TYPE.HEADERS);
    const write = sidecar.exchange(post('/', 'once'));
    await connection.next(TYPE.HEADERS);

    connection.socket.destroy();

    expectProblem(await write, 'upstream_protocol_error');
    const [second, again] = await asked(upstream);
    second.answer(again, 'again');
    expect((await read).body).toBe('again');
  });

  it('has none sent again whose answer has begun: the app sees that it is incomplete', async () => {
    const { upstream, sidecar, connection } = await startWarm();
    const client = await sidecar.connect();
    client.send(get('/'));
    const { streamId } = await connection.next(TYPE.HEADERS);
    connection.answer(streamId);
    const head = await client.head();
    expect(head.status).toBe(200);

    connection.socket.destroy();

    await expect(client.body(head)).rejects.toThrow();
    expect(upstream.connections).toHaveLength(1);
  });

  it('and was new fails its requests whatever their method', async () => {
    const { upstream, sidecar } = await start();
    const answer = sidecar.exchange(get('/'));
    const [connection] = await asked(upstream);

    connection.socket.destroy();

    expectProblem(await answer, 'upstream_protocol_error');
    expect(upstream.connections).toHaveLength(1);
  });

  it('by a GOAWAY that covers no stream gives the reason in the error', async () => {
    const { upstream, sidecar } = await start();
    const answer = sidecar.exchange(post('/', 'x'));
    const [connection, streamId] = await asked(upstream);

    connection.goaway(streamId, 0xb);
    connection.socket.end();

    expectProblem(await answer, 'upstream_protocol_error');
    expect((await answer).body).toContain('ENHANCE_YOUR_CALM');
  });
});
