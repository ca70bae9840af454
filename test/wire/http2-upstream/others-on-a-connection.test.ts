/** What streams of one connection do to the others on it. */

import { expect, it } from 'vitest';
import { until } from '../../support/until.ts';
import { Setting } from '../http2/frames.ts';
import { connectHttp2, type RawHttp2Client } from '../http2/raw-http2-client.ts';
import { type Sidecar, startSidecar } from '../sidecar.ts';
import {
  dataFrame,
  type FrameConnection,
  frame,
  INITIAL_WINDOW_SIZE,
  startFrames,
  TYPE,
} from './frame-upstream.ts';
import { HTTP2 } from './node-upstream.ts';

const WINDOW = 65_535;
/** Nothing that stalls is given up meanwhile. */
const LONG = { connectMs: 60_000, responseMs: 60_000, idleMs: 60_000 };
const PIECE = Buffer.alloc(16_384, 'x');

/** What the sidecar has given back for a stream, or for the connection. */
function givenBack(client: RawHttp2Client, streamId: number): number {
  const updates = client.frames.filter(
    (each) => each.type === TYPE.WINDOW_UPDATE && each.streamId === streamId,
  );
  return updates.reduce((sum, { payload }) => sum + payload.readUInt32BE(0), 0);
}

it('an upload continues while stalled uploads hold more than half of the window of the app’s connection', async () => {
  const stalled = 60;
  const upstream = await startFrames((connection) => connection.settings([INITIAL_WINDOW_SIZE, 0]));
  const sidecar = await startSidecar({ upstream, route: { protocol: HTTP2, timeouts: LONG } });
  const client = await connectHttp2(sidecar);
  const first = client.get('/');
  const connection = await upstream.connection();
  connection.answer((await connection.next(TYPE.HEADERS)).streamId, '');
  await client.answer(first);
  connection.windowUpdate(0, 2 ** 30);
  let sent = 0;
  for (let at = 0; at < stalled; at += 1) {
    const stream = client.post(`/stalled/${at}`);
    for (let piece = 0; piece < 4; piece += 1) client.data(stream, PIECE);
    sent += 4 * PIECE.length;
    await connection.next(TYPE.HEADERS);
  }

  const upload = client.post('/upload');
  const { streamId } = await connection.next(TYPE.HEADERS);
  connection.windowUpdate(streamId, 2 ** 30);
  for (let uploaded = 0; uploaded < 4_000_000; uploaded += PIECE.length) {
    await until(
      () =>
        WINDOW + givenBack(client, 0) - sent >= PIECE.length &&
        WINDOW + givenBack(client, upload) - uploaded >= PIECE.length,
    );
    client.data(upload, PIECE);
    sent += PIECE.length;
  }
  client.data(upload, '', true);
  await connection.data(streamId, 4_000_000);
  connection.answer(streamId, 'whole');

  expect((await client.answer(upload)).body).toBe('whole');
});

it('an upload continues although a stalled one took the rest of the window of the app’s connection', async () => {
  const upstream = await startFrames((connection) => connection.settings([INITIAL_WINDOW_SIZE, 0]));
  const connectionWindowBytes = 128 * 1024;
  const http2 = { maxStreams: 100, streamWindowBytes: 64 * 1024, connectionWindowBytes };
  const sidecar = await startSidecar({
    upstream,
    route: { protocol: HTTP2, timeouts: LONG },
    limits: { http2 },
  });
  const client = await connectHttp2(sidecar);
  const first = client.get('/');
  const connection = await upstream.connection();
  connection.answer((await connection.next(TYPE.HEADERS)).streamId, '');
  await client.answer(first);
  connection.windowUpdate(0, 2 ** 30);
  const stalled = client.post('/stalled');
  for (let piece = 0; piece < 4; piece += 1) client.data(stalled, PIECE);
  await connection.next(TYPE.HEADERS);
  const upload = client.post('/upload');
  const { streamId } = await connection.next(TYPE.HEADERS);
  connection.windowUpdate(streamId, 2 ** 30);
  // Less than half of the window, and than what is left of it.
  const begun = 31_000;
  for (let sent = 0; sent < begun; sent += begun / 2) client.data(upload, PIECE.subarray(0, begun / 2));
  await connection.data(streamId, begun);

  const another = client.post('/stalled');
  await connection.next(TYPE.HEADERS);
  const left = connectionWindowBytes - 4 * PIECE.length - begun;
  for (let sent = 0; sent < left; sent += left / 4) client.data(another, PIECE.subarray(0, left / 4));

  await until(() => WINDOW + givenBack(client, 0) - connectionWindowBytes > 0);
  client.data(upload, 'the rest', true);
  await connection.data(streamId, begun + 8);
  connection.answer(streamId, 'whole');
  expect((await client.answer(upload)).body).toBe('whole');
});

it('any number of malformed answers fail alone, and the connection stays open', async () => {
  const upstream = await startFrames();
  const sidecar = await startSidecar({ upstream, route: { protocol: HTTP2 } });
  const client = await connectHttp2(sidecar);
  const lasting = client.get('/lasting');
  const connection = await upstream.connection();
  const { streamId } = await connection.next(TYPE.HEADERS);
  connection.answer(streamId);
  await client.head(lasting);

  // `:status` 200 with `content-length` 5, and 3 octets.
  const head = Buffer.from('880f0d0135', 'hex');
  for (let at = 0; at < 250; at += 1) {
    const asked = client.get(`/${at}`);
    const request = await connection.next(TYPE.HEADERS);
    connection.send(
      frame(TYPE.HEADERS, 0x4, request.streamId, head),
      dataFrame(request.streamId, 'abc', true),
    );
    await client.answer(asked);
  }
  connection.send(dataFrame(streamId, 'to its end', true));

  expect((await client.answer(lasting)).body).toBe('to its end');
  expect(connection.all(TYPE.GOAWAY)).toEqual([]);
});

/** As many requests of an app that does not read as hold all that one connection may have unread. */
const SLOW = 40;

/** Has an app ask so often, on a connection of its own, and read nothing of what comes. */
async function askAndDoNotRead(sidecar: Sidecar): Promise<void> {
  const slow = await connectHttp2(sidecar, {
    updatesWindows: false,
    keepsBodies: false,
    settings: [[Setting.INITIAL_WINDOW_SIZE, 1000]],
  });
  for (let at = 0; at < SLOW; at += 1) slow.get(`/slow/${at}`);
}

/** Sends answers to these, as much as each stream takes, until they hold all that they may of the connection. */
async function answerWithoutEnd(connection: FrameConnection, streams: readonly number[]): Promise<void> {
  for (const streamId of streams) connection.answer(streamId);
  let sent = 0;
  const granted = (): number =>
    connection
      .all(TYPE.WINDOW_UPDATE)
      .filter(({ streamId }) => streamId === 0)
      .reduce((sum, { payload }) => sum + payload.readUInt32BE(0), WINDOW);
  const held = 8 * 1024 * 1024;
  for (let at = 0; sent <= held; at += 1) {
    await until(() => granted() - sent >= PIECE.length);
    connection.send(dataFrame(streams[Math.floor(at / 15)] as number, PIECE.toString(), false));
    sent += PIECE.length;
  }
  await connection.read();
}

/** The streams of the next requests on a connection. */
async function asked(connection: FrameConnection, count: number): Promise<number[]> {
  const streams: number[] = [];
  while (streams.length < count) streams.push((await connection.next(TYPE.HEADERS)).streamId);
  return streams;
}

it('a request uses another connection while apps that do not read fill one', async () => {
  const upstream = await startFrames();
  const sidecar = await startSidecar({ upstream, route: { protocol: HTTP2, timeouts: LONG } });
  await askAndDoNotRead(sidecar);
  const connection = await upstream.connection();
  await answerWithoutEnd(connection, await asked(connection, SLOW));

  const client = await connectHttp2(sidecar);
  const request = client.get('/other');
  const other = await upstream.connection();
  other.answer((await other.next(TYPE.HEADERS)).streamId, 'at once');

  expect((await client.answer(request)).body).toBe('at once');
});

it('apps that do not read fill at most four connections of a route', async () => {
  const most = 4;
  const upstream = await startFrames();
  const sidecar = await startSidecar({ upstream, route: { protocol: HTTP2, timeouts: LONG } });
  for (let made = 0; made < most; made += 1) {
    await askAndDoNotRead(sidecar);
    const connection = await upstream.connection();
    await answerWithoutEnd(connection, await asked(connection, SLOW));
  }

  const client = await connectHttp2(sidecar);
  const request = client.get('/other');
  // It goes out on any of them.
  const { connection, streamId } = await Promise.race(
    upstream.connections.map(async (connection) => {
      const { streamId } = await connection.next(TYPE.HEADERS);
      return { connection, streamId };
    }),
  );
  connection.answer(streamId, '');

  expect((await client.answer(request)).body).toBe('');
  expect(upstream.connections).toHaveLength(most);
});
