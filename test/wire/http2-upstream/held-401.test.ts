import { describe, expect, it } from 'vitest';
import { ShiftedClock } from '../../support/shifted-clock.ts';
import { until } from '../../support/until.ts';
import { FakeBearer, SECOND } from '../fake-bearer.ts';
import { CHUNKED, chunk, get, LAST_CHUNK, message, post } from '../messages.ts';
import { startSidecar } from '../sidecar.ts';
import {
  CODE,
  dataFrame,
  ends,
  type FrameConnection,
  INITIAL_WINDOW_SIZE,
  startFrames,
  TYPE,
} from './frame-upstream.ts';
import { HTTP2 } from './node-upstream.ts';

const HOUR_MS = 3_600_000;
const WINDOW_BYTES = 65_535;

/** A connection whose windows are known, and a bearer that replaces its token when it is told what by. */
async function start(replayBytes: number, ...settings: [number, number][]) {
  const replaced = Promise.withResolvers<string | undefined>();
  const upstream = await startFrames((connection) => connection.settings(...settings));
  const clock = new ShiftedClock();
  const bearer = new FakeBearer({ replace: () => replaced.promise });
  const sidecar = await startSidecar({
    upstream,
    bearer,
    clock,
    route: { protocol: HTTP2, timeouts: { connectMs: HOUR_MS, responseMs: HOUR_MS, idleMs: 20_000 } },
    limits: { replayBytes, headerTimeoutMs: HOUR_MS, keepAliveTimeoutMs: HOUR_MS },
  });
  const warm = sidecar.exchange(get('/warm'));
  const connection = await upstream.connection();
  connection.answer((await connection.next(TYPE.HEADERS)).streamId, 'warm');
  await warm;
  return { upstream, sidecar, clock, bearer, connection, replace: replaced.resolve };
}

/** Whether the body of a request has come to its end. */
async function ended(connection: FrameConnection, streamId: number): Promise<void> {
  await until(() => connection.all(TYPE.DATA).some((frame) => frame.streamId === streamId && ends(frame)));
}

describe('while a 401 is held and part of the body waits for the flow-control window', () => {
  it('the upstream may reset the stream and open the window, and every request is served', async () => {
    const { sidecar, connection, replace } = await start(WINDOW_BYTES);
    const bodies = ['x', 'y'].map((letter) => letter.repeat(40_000));
    const answers: Promise<{ body: string }>[] = [];
    const ids: number[] = [];
    for (const body of bodies) {
      answers.push(sidecar.exchange(post('/', body)));
      ids.push((await connection.next(TYPE.HEADERS)).streamId);
    }
    const [one, two] = ids as [number, number];
    await connection.data(one, 40_000);
    await connection.data(two, WINDOW_BYTES - 40_000);

    for (const streamId of ids) {
      connection.status(streamId, 401, true);
      connection.reset(streamId, CODE.NO_ERROR);
    }
    connection.windowUpdate(0, 40_000);
    await connection.read();

    replace(SECOND);
    connection.windowUpdate(0, 40_000);
    for (const answer of answers) {
      const { streamId } = await connection.next(TYPE.HEADERS);
      expect(bodies).toContain(await connection.data(streamId, 40_000));
      connection.answer(streamId, 'served');
      void answer;
    }
    for (const answer of answers) expect(await answer).toMatchObject({ status: 200, body: 'served' });
  });

  it('a connection that dies is replaced by another', async () => {
    const { upstream, sidecar, bearer, connection, replace } = await start(1024, [INITIAL_WINDOW_SIZE, 10]);
    const answer = sidecar.exchange(post('/', 'abcdefghijklmnop'));
    const { streamId } = await connection.next(TYPE.HEADERS);
    await connection.data(streamId, 10);
    connection.status(streamId, 401, false);
    await until(() => bearer.refused.length === 1);

    connection.socket.destroy();
    await until(() => connection.socket.closed);
    replace(SECOND);

    const second = await upstream.connection();
    const again = (await second.next(TYPE.HEADERS)).streamId;
    second.windowUpdate(again, 10);
    expect(await second.data(again, 16)).toBe('abcdefghijklmnop');
    second.answer(again, 'served');
    expect(await answer).toMatchObject({ status: 200, body: 'served' });
  });

  it('the app stays paused when the window opens, and its body is sent again whole', async () => {
    const { sidecar, connection, replace } = await start(1024, [INITIAL_WINDOW_SIZE, 10]);
    const client = await sidecar.connect();
    client.send(message('POST / HTTP/1.1', ['Host: app.test', CHUNKED], chunk('a'.repeat(20))));
    const { streamId } = await connection.next(TYPE.HEADERS);
    await connection.data(streamId, 10);
    connection.status(streamId, 401, false);

    connection.windowUpdate(streamId, 100_000);
    await connection.data(streamId, 20);
    // More than is kept.
    client.send(chunk('b'.repeat(2000)) + chunk('c') + LAST_CHUNK);
    // The sidecar refuses this by itself, having read what came before.
    await sidecar.exchange(get('/', 'Transfer-Encoding: unknown'));
    await connection.read();
    replace(SECOND);

    const { streamId: again } = await connection.next(TYPE.HEADERS);
    connection.windowUpdate(again, 100_000);
    await ended(connection, again);
    expect(await connection.data(again, 2021)).toBe(`${'a'.repeat(20)}${'b'.repeat(2000)}c`);
    connection.answer(again, 'served');
    expect(await client.response()).toMatchObject({ status: 200, body: 'served' });
  });

  it('the app continues where it was if no other token comes', async () => {
    const { sidecar, connection, replace } = await start(1024, [INITIAL_WINDOW_SIZE, 10]);
    const client = await sidecar.connect();
    client.send(message('POST / HTTP/1.1', ['Host: app.test', CHUNKED], chunk('a'.repeat(20))));
    const { streamId } = await connection.next(TYPE.HEADERS);
    await connection.data(streamId, 10);
    connection.status(streamId, 401, false);
    connection.windowUpdate(streamId, 100_000);
    await connection.data(streamId, 20);

    replace(undefined);

    expect(await client.head()).toMatchObject({ status: 401 });
    client.send(chunk('b') + LAST_CHUNK);
    await ended(connection, streamId);
    expect(await connection.data(streamId, 21)).toBe(`${'a'.repeat(20)}b`);
  });

  it('timeouts.idle does not run while the sidecar waits for a token', async () => {
    const { sidecar, clock, connection, replace } = await start(1024, [INITIAL_WINDOW_SIZE, 10]);
    const client = await sidecar.connect();
    client.send(message('POST / HTTP/1.1', ['Host: app.test', 'Content-Length: 40'], 'a'.repeat(20)));
    const { streamId } = await connection.next(TYPE.HEADERS);
    await connection.data(streamId, 10);
    connection.status(streamId, 401, false);
    connection.windowUpdate(streamId, 5);
    await connection.data(streamId, 15);

    clock.advance(60_000);
    await connection.read();
    replace(SECOND);

    const { streamId: again } = await connection.next(TYPE.HEADERS);
    connection.answer(again, 'served');
    expect(await client.response()).toMatchObject({ status: 200, body: 'served' });
  });
});

describe('a held 401 that the upstream resets', () => {
  it('is passed on as far as it came, and the request is not sent again', async () => {
    const { upstream, sidecar, connection, replace } = await start(1024);
    const client = await sidecar.connect();
    client.send(get('/'));
    const { streamId } = await connection.next(TYPE.HEADERS);
    connection.status(streamId, 401, false);
    connection.send(dataFrame(streamId, 'abc', false));
    connection.reset(streamId, CODE.REFUSED_STREAM);
    await connection.read();

    replace(undefined);

    const head = await client.head();
    expect(head.status).toBe(401);
    await expect(client.body(head)).rejects.toThrow();
    await sidecar.idle();
    expect(upstream.connections).toHaveLength(1);
    expect(connection.all(TYPE.HEADERS)).toHaveLength(2);
  });
});
