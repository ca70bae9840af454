import { expect, it } from 'vitest';
import { ShiftedClock } from '../../support/shifted-clock.ts';
import { until } from '../../support/until.ts';
import { get, message } from '../messages.ts';
import { startSidecar } from '../sidecar.ts';
import { type FrameConnection, INITIAL_WINDOW_SIZE, startFrames, TYPE } from './frame-upstream.ts';
import { HTTP2 } from './node-upstream.ts';

const HOUR_MS = 3_600_000;
/** What an upstream that has granted nothing takes on one connection, and of every stream far more. */
const WINDOW_BYTES = 65_535;
const TOTAL = 100_000;

function taken(connection: FrameConnection): number {
  return connection.all(TYPE.DATA).reduce((sum, { payload }) => sum + payload.length, 0);
}

it('an upload stalled by its upstream stops no request that begins two seconds later', async () => {
  const clock = new ShiftedClock();
  const upstream = await startFrames((connection) => connection.settings([INITIAL_WINDOW_SIZE, 2 ** 31 - 1]));
  const sidecar = await startSidecar({
    upstream,
    clock,
    route: { protocol: HTTP2, timeouts: { connectMs: HOUR_MS, responseMs: HOUR_MS, idleMs: HOUR_MS } },
    limits: { headerTimeoutMs: HOUR_MS, keepAliveTimeoutMs: HOUR_MS },
  });
  const slow = await sidecar.connect();
  slow.send(message('POST /slow HTTP/1.1', ['Host: app.test', `Content-Length: ${TOTAL}`]));
  slow.socket.write(Buffer.alloc(TOTAL, 's'));
  const first = await upstream.connection();
  const { streamId } = await first.next(TYPE.HEADERS);
  await until(() => taken(first) === WINDOW_BYTES);

  clock.advance(2_100);
  // Whatever came before this has been looked at.
  await sidecar.metric('proxy_requests_in_flight');
  const other = await sidecar.connect();
  other.send(message('POST /other HTTP/1.1', ['Host: app.test', 'Content-Length: 5'], 'quick'));

  const second = await upstream.connection();
  const head = await second.next(TYPE.HEADERS);
  await until(() => taken(second) === 5);
  second.answer(head.streamId, 'other');
  expect((await other.response()).body).toBe('other');

  first.windowUpdate(0, TOTAL);
  await until(() => taken(first) === TOTAL);
  first.answer(streamId, 'slow');
  expect((await slow.response()).body).toBe('slow');
  const again = sidecar.exchange(get('/again'));
  const next = await first.next(TYPE.HEADERS);
  first.answer(next.streamId, 'again');
  expect((await again).body).toBe('again');
});
