import type { Socket } from 'node:net';
import { expect, it, vi } from 'vitest';
import { ShiftedClock } from '../../support/shifted-clock.ts';
import { until } from '../../support/until.ts';
import { type BothEnds, kernelQueues } from '../kernel-queues.ts';
import { get, message } from '../messages.ts';
import { startSidecar } from '../sidecar.ts';
import { type FrameConnection, frame, INITIAL_WINDOW_SIZE, startFrames, TYPE } from './frame-upstream.ts';
import { HTTP2 } from './node-upstream.ts';

vi.setConfig({ testTimeout: 60_000 });

const HOUR_MS = 3_600_000;
const MAX_WINDOW = 2 ** 31 - 1;
/** More than the kernel takes on two loopback hops for a reader that does not read. */
const TOTAL = 32 * 1024 * 1024;
const HEAD_BYTES = 60_000;

/** An upload on a connection whose upstream has stopped reading: nothing more of it leaves. */
async function startStuck() {
  const clock = new ShiftedClock();
  const upstream = await startFrames((connection) => connection.settings([INITIAL_WINDOW_SIZE, MAX_WINDOW]));
  const sidecar = await startSidecar({
    upstream,
    clock,
    route: { protocol: HTTP2, timeouts: { connectMs: HOUR_MS, responseMs: HOUR_MS, idleMs: HOUR_MS } },
    limits: { headerTimeoutMs: HOUR_MS, keepAliveTimeoutMs: HOUR_MS, headerBytes: 2 * HEAD_BYTES },
  });
  const warm = sidecar.exchange(get('/warm'));
  const connection = await upstream.connection();
  connection.answer((await connection.next(TYPE.HEADERS)).streamId, 'warm');
  await warm;
  connection.windowUpdate(0, MAX_WINDOW - 65_535);
  const client = await sidecar.connect();
  client.send(message('POST /upload HTTP/1.1', ['Host: app.test', `Content-Length: ${TOTAL}`]));
  const { streamId } = await connection.next(TYPE.HEADERS);
  connection.socket.pause();
  client.socket.write(Buffer.alloc(TOTAL, 'x'));
  await heldBack(client.socket, connection.socket);
  return { clock, upstream, sidecar, connection, client, streamId };
}

/** Resolves when the kernel moves nothing from the app to the upstream any more. */
async function heldBack(from: Socket, to: Socket): Promise<void> {
  let last = '';
  for (let turns = 0; turns < 8; ) {
    const [up, down] = kernelQueues(from, to) as [BothEnds, BothEnds];
    const now = JSON.stringify([up, down]);
    turns = now === last && up.peer.unread > 0 && down.peer.peerIsFull ? turns + 1 : 0;
    last = now;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Lets seconds pass, each seen by the sidecar: many at once are a process that was stopped. */
async function pass(
  { clock, sidecar }: Awaited<ReturnType<typeof startStuck>>,
  seconds: number,
): Promise<void> {
  for (let second = 0; second < seconds; second++) {
    clock.advance(1_000);
    await sidecar.metric('proxy_requests_in_flight');
  }
}

/** All of the upload has come. */
function whole(connection: FrameConnection): Promise<void> {
  return until(
    () => connection.all(TYPE.DATA).reduce((sum, { payload }) => sum + payload.length, 0) === TOTAL,
  );
}

it('a request does not wait behind unread data for more than two seconds before it uses another connection', async () => {
  const { clock, upstream, sidecar, connection, client, streamId } = await startStuck();
  const fresh = await sidecar.connect();
  fresh.send(get('/fresh'));
  await until(async () => (await sidecar.metric('proxy_requests_in_flight')) === 2);
  expect(upstream.connections).toHaveLength(1);

  clock.advance(2_100);

  const second = await upstream.connection();
  second.answer((await second.next(TYPE.HEADERS)).streamId, 'fresh');
  expect((await fresh.response()).body).toBe('fresh');
  connection.socket.resume();
  await whole(connection);
  connection.answer(streamId, 'whole');
  expect((await client.response()).body).toBe('whole');
});

it('cancelled requests do not accumulate in the socket buffer of an upstream that does not read', async () => {
  const { clock, sidecar, connection } = await startStuck();
  const heard = connection.all(TYPE.PING).length;
  const big = `X-Big: ${'b'.repeat(HEAD_BYTES)}`;
  for (let round = 0; round < 10; round++) {
    const clients = await Promise.all(Array.from({ length: 20 }, () => sidecar.connect()));
    for (const client of clients) client.send(get('/cancelled', big));
    await until(async () => (await sidecar.metric('proxy_requests_in_flight')) === 21);
    for (const client of clients) client.reset();
    await until(async () => (await sidecar.metric('proxy_requests_in_flight')) === 1);
    // It speaks, and reads nothing.
    connection.send(frame(TYPE.PING, 0, 0, Buffer.alloc(8)));
    clock.advance(100);
  }

  connection.socket.resume();
  await connection.next(TYPE.PING);

  expect(connection.all(TYPE.PING).length).toBeGreaterThan(heard);
  expect(connection.all(TYPE.HEADERS)).toHaveLength(2);
});

it('an upload continues although PING was stuck behind it, and its connection gets no other request', async () => {
  const stuck = await startStuck();
  const { upstream, sidecar, connection, client, streamId } = stuck;
  await pass(stuck, 11);
  const fresh = await sidecar.connect();
  fresh.send(get('/fresh'));
  const second = await upstream.connection();
  second.answer((await second.next(TYPE.HEADERS)).streamId, 'fresh');
  expect((await fresh.response()).body).toBe('fresh');
  await pass(stuck, 3);

  connection.socket.resume();

  await whole(connection);
  connection.answer(streamId, 'whole');
  expect((await client.response()).body).toBe('whole');
  await connection.closed();
  expect(connection.all(TYPE.HEADERS)).toHaveLength(2);
});
