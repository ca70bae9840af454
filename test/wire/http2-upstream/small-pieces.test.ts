import { expect, it } from 'vitest';
import { until } from '../../support/until.ts';
import { FakeBearer, SECOND } from '../fake-bearer.ts';
import { CHUNKED, chunk, get, LAST_CHUNK, message } from '../messages.ts';
import { startSidecar } from '../sidecar.ts';
import {
  dataFrame,
  type FrameConnection,
  type FrameUpstream,
  INITIAL_WINDOW_SIZE,
  startFrames,
  TYPE,
} from './frame-upstream.ts';
import { HTTP2 } from './node-upstream.ts';

const PIECES = 4000;
const BODY = 'x'.repeat(PIECES);
/** A body of which every octet comes by itself. */
const UPLOAD =
  message('POST / HTTP/1.1', ['Host: app.test', CHUNKED], chunk('x').repeat(PIECES)) + LAST_CHUNK;

async function start(upstream: FrameUpstream, bearer = new FakeBearer()) {
  const sidecar = await startSidecar({
    upstream,
    bearer,
    route: { protocol: HTTP2 },
    limits: { replayBytes: PIECES },
  });
  const warm = sidecar.exchange(get('/warm'));
  const connection = await upstream.connection();
  connection.answer((await connection.next(TYPE.HEADERS)).streamId, 'warm');
  await warm;
  return { sidecar, connection };
}

/** How many frames a body came in. */
function framesOf(connection: FrameConnection, streamId: number): number {
  return connection.all(TYPE.DATA).filter((frame) => frame.streamId === streamId).length;
}

it('a body of small pieces that waits for a window is sent in few frames', async () => {
  const { sidecar, connection } = await start(
    await startFrames((connecting) => connecting.settings([INITIAL_WINDOW_SIZE, 0])),
  );
  const answer = sidecar.exchange(UPLOAD);
  const { streamId } = await connection.next(TYPE.HEADERS);
  await connection.read();

  connection.windowUpdate(streamId, PIECES);

  expect(await connection.data(streamId, PIECES)).toBe(BODY);
  // What the app sends after it is let go on comes in pieces again.
  expect(framesOf(connection, streamId)).toBeLessThan(PIECES / 4);
  connection.answer(streamId, 'served');
  expect((await answer).body).toBe('served');
});

it('a body of small pieces that is sent again is sent in few frames', async () => {
  const { sidecar, connection } = await start(
    await startFrames(),
    new FakeBearer({ replace: async () => SECOND }),
  );
  const answer = sidecar.exchange(UPLOAD);
  const { streamId } = await connection.next(TYPE.HEADERS);
  await connection.data(streamId, PIECES);
  connection.status(streamId, 401, true);

  const { streamId: again } = await connection.next(TYPE.HEADERS);

  expect(await connection.data(again, PIECES)).toBe(BODY);
  expect(framesOf(connection, again)).toBeLessThan(5);
  connection.answer(again, 'served');
  expect((await answer).body).toBe('served');
});

it('an answer of small pieces that was held is passed on in few pieces', async () => {
  const replaced = Promise.withResolvers<undefined>();
  const bearer = new FakeBearer({ replace: () => replaced.promise });
  const { sidecar, connection } = await start(await startFrames(), bearer);
  const client = await sidecar.connect();
  client.send(get('/'));
  const { streamId } = await connection.next(TYPE.HEADERS);
  connection.status(streamId, 401, false);
  await until(() => bearer.refused.length === 1);
  for (let piece = 0; piece < PIECES; piece++) connection.send(dataFrame(streamId, 'x', false));
  connection.send(dataFrame(streamId, '', true));
  await connection.read();

  replaced.resolve(undefined);

  expect(await client.response()).toMatchObject({ status: 401, body: BODY });
  // A chunk for each piece would be six octets for each.
  expect(client.socket.bytesRead).toBeLessThan(PIECES * 2);
});
