import { describe, expect, it } from 'vitest';
import { ShiftedClock } from '../../support/shifted-clock.ts';
import { get, post } from '../messages.ts';
import { startSidecar } from '../sidecar.ts';
import { CODE, startFrames, TYPE } from './frame-upstream.ts';
import { HTTP2 } from './node-upstream.ts';

const HOUR_MS = 3_600_000;

/** A connection that has carried a request. */
async function startWarm() {
  const clock = new ShiftedClock();
  const upstream = await startFrames();
  const sidecar = await startSidecar({
    upstream,
    clock,
    route: { protocol: HTTP2, timeouts: { connectMs: HOUR_MS, responseMs: HOUR_MS, idleMs: HOUR_MS } },
    limits: { headerTimeoutMs: HOUR_MS, keepAliveTimeoutMs: HOUR_MS },
  });
  const warm = sidecar.exchange(get('/warm'));
  const connection = await upstream.connection();
  connection.answer((await connection.next(TYPE.HEADERS)).streamId, 'warm');
  await warm;
  return { clock, upstream, sidecar, connection };
}

describe.each(['advance', 'suspend'] as const)('after 20 s without a frame (%s)', (pass) => {
  it('a connection has to answer PING before it gets another request', async () => {
    const { clock, upstream, sidecar, connection } = await startWarm();
    clock[pass](20_000);

    const answer = sidecar.exchange(post('/', 'x'));

    const { payload } = await connection.next(TYPE.PING);
    expect(connection.all(TYPE.HEADERS)).toHaveLength(1);
    connection.pong(payload);
    connection.answer((await connection.next(TYPE.HEADERS)).streamId, 'still there');
    expect((await answer).body).toBe('still there');
    expect(upstream.connections).toHaveLength(1);
  });

  it('a connection that does not answer PING is given up and replaced', async () => {
    const { clock, upstream, sidecar, connection } = await startWarm();
    clock[pass](20_000);
    const answer = sidecar.exchange(post('/', 'x'));
    await connection.next(TYPE.PING);

    clock.advance(3_000);

    const second = await upstream.connection();
    second.answer((await second.next(TYPE.HEADERS)).streamId, 'another');
    expect((await answer).body).toBe('another');
    await connection.closed();
  });
});

it('an idle connection is closed with GOAWAY within a minute', async () => {
  const { clock, connection } = await startWarm();

  clock.advance(56_000);

  const { payload } = await connection.next(TYPE.GOAWAY);
  expect(payload.readUInt32BE(4)).toBe(CODE.NO_ERROR);
  await connection.closed();
});

it('an old connection gets no new request and finishes those it has', async () => {
  const { clock, upstream, sidecar, connection } = await startWarm();
  const old = sidecar.exchange(get('/old'));
  const { streamId } = await connection.next(TYPE.HEADERS);
  clock.advance(301_000);

  const young = sidecar.exchange(get('/young'));

  const second = await upstream.connection();
  second.answer((await second.next(TYPE.HEADERS)).streamId, 'young');
  expect((await young).body).toBe('young');
  connection.answer(streamId, 'old');
  expect((await old).body).toBe('old');
  await connection.closed();
});

it('an idle connection that ended meanwhile is not used', async () => {
  const { clock, upstream, sidecar, connection } = await startWarm();
  clock.advance(500);
  connection.goaway(1, CODE.NO_ERROR);
  connection.socket.end();

  const answer = sidecar.exchange(post('/', 'x'));

  const second = await upstream.connection();
  second.answer((await second.next(TYPE.HEADERS)).streamId, 'another');
  expect((await answer).body).toBe('another');
});
