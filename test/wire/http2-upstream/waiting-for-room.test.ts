import { describe, expect, it } from 'vitest';
import { until } from '../../support/until.ts';
import { get } from '../messages.ts';
import { expectProblem } from '../problem.ts';
import { overTls } from '../raw-upstream.ts';
import { startSidecar } from '../sidecar.ts';
import {
  CODE,
  type FrameConnection,
  frame,
  MAX_CONCURRENT_STREAMS,
  startFrames,
  TYPE,
} from './frame-upstream.ts';
import { startFront } from './front.ts';
import { HTTP2 } from './node-upstream.ts';

/** A connection that carries a request which does not end, behind a front. */
async function startBusy(...settings: [number, number][]) {
  const upstream = await startFrames((connection) => connection.settings(...settings));
  const front = await startFront(upstream);
  const sidecar = await startSidecar({ upstream: front, route: { protocol: HTTP2 } });
  const client = await sidecar.connect();
  client.send(get('/long'));
  const connection = await upstream.connection();
  const { streamId } = await connection.next(TYPE.HEADERS);
  connection.answer(streamId);
  // SETTINGS are read before that.
  await client.head();
  return { upstream, front, sidecar, connection };
}

/** Does so with every request, until the connection ends. */
function each(connection: FrameConnection, heed: (streamId: number) => void): void {
  void (async () => {
    for (;;) heed((await connection.next(TYPE.HEADERS)).streamId);
  })().catch(() => {});
}

describe('while a refused request waits for another connection to be made', () => {
  // Without TLS a connection stands though nobody answers.
  it.runIf(overTls)('other requests go on even if that connection is never established', async () => {
    const { front, sidecar, connection } = await startBusy();
    front.hold();
    const client = await sidecar.connect();
    client.send(get('/refused'));
    connection.reset((await connection.next(TYPE.HEADERS)).streamId, CODE.REFUSED_STREAM);
    // Read behind it.
    connection.send(frame(TYPE.PING, 0, 0, Buffer.alloc(8)));
    await connection.next(TYPE.PING);

    const fresh = sidecar.exchange(get('/fresh'));

    connection.answer((await connection.next(TYPE.HEADERS)).streamId, 'fresh');
    expect((await fresh).body).toBe('fresh');
  });

  it('it returns to the old connection if the new one fails', async () => {
    const { upstream, front, sidecar, connection } = await startBusy();
    await front.close();
    const refused = sidecar.exchange(get('/refused'));
    connection.reset((await connection.next(TYPE.HEADERS)).streamId, CODE.REFUSED_STREAM);

    connection.answer((await connection.next(TYPE.HEADERS)).streamId, 'taken');

    expect((await refused).body).toBe('taken');
    expect(upstream.connections).toHaveLength(1);
  });
});

it('an upstream that keeps refusing streams gets one more connection, not one per request', async () => {
  const { upstream, sidecar, connection } = await startBusy();
  each(connection, (streamId) => connection.reset(streamId, CODE.REFUSED_STREAM));
  void upstream.connection().then((second) => each(second, (streamId) => second.answer(streamId, 'ok')));

  for (let count = 0; count < 20; count++) {
    expect((await sidecar.exchange(get('/'))).body).toBe('ok');
  }

  expect(upstream.connections).toHaveLength(2);
});

it.runIf(overTls)('a waiting request is sent as soon as the upstream allows more streams', async () => {
  const { front, sidecar, connection } = await startBusy([MAX_CONCURRENT_STREAMS, 1]);
  front.hold();
  const client = await sidecar.connect();
  client.send(get('/second'));
  await until(async () => (await sidecar.metric('proxy_requests_in_flight')) === 2);

  connection.settings([MAX_CONCURRENT_STREAMS, 100]);

  connection.answer((await connection.next(TYPE.HEADERS)).streamId, 'second');
  expect((await client.response()).body).toBe('second');
});

describe('an upstream that allows no streams', () => {
  it('gets no further connection; requests wait until it allows one', async () => {
    const { upstream, sidecar, connection } = await startBusy();
    connection.settings([MAX_CONCURRENT_STREAMS, 0]);
    connection.send(frame(TYPE.PING, 0, 0, Buffer.alloc(8)));
    await connection.next(TYPE.PING);
    const clients = await Promise.all(Array.from({ length: 5 }, () => sidecar.connect()));
    for (const client of clients) client.send(get('/'));
    await until(async () => (await sidecar.metric('proxy_requests_in_flight')) === 6);
    expect(upstream.connections).toHaveLength(1);

    connection.settings([MAX_CONCURRENT_STREAMS, 100]);

    each(connection, (streamId) => connection.answer(streamId, 'allowed'));
    for (const client of clients) expect((await client.response()).body).toBe('allowed');
    expect(upstream.connections).toHaveLength(1);
  });

  it('from the start is not tried again before the waiting time has ended', async () => {
    const upstream = await startFrames((connection) => {
      connection.settings([MAX_CONCURRENT_STREAMS, 0]);
      each(connection, (streamId) => connection.reset(streamId, CODE.REFUSED_STREAM));
    });
    const route = { protocol: HTTP2, timeouts: { connectMs: 300 } };
    const sidecar = await startSidecar({ upstream, route });

    const answers = await Promise.all(Array.from({ length: 20 }, () => sidecar.exchange(get('/'))));

    for (const answer of answers) expectProblem(answer, 'upstream_timeout');
    expect(upstream.connections).toHaveLength(1);
  });
});

it('a partly received SETTINGS frame does not raise the number of streams', async () => {
  const whole = frame(TYPE.SETTINGS, 0, 0, Buffer.from([0, MAX_CONCURRENT_STREAMS, 0, 0, 0, 1]));
  const upstream = await startFrames((connection) => {
    connection.acknowledges = false;
    connection.send(whole.subarray(0, 4));
  });
  const sidecar = await startSidecar({ upstream, route: { protocol: HTTP2 } });
  const clients = await Promise.all(Array.from({ length: 150 }, () => sidecar.connect()));

  for (const client of clients) client.send(get('/'));

  const [one, two] = [await upstream.connection(), await upstream.connection()];
  await until(() => one.all(TYPE.HEADERS).length + two.all(TYPE.HEADERS).length === 150);
  expect(one.all(TYPE.HEADERS)).toHaveLength(100);
});
