import { expect, it } from 'vitest';
import { writeBlock } from '../../../wire/http2/field-block.ts';
import { Flag, frame, PREFACE, Type } from '../../../wire/http2/frames.ts';
import { requestFields } from '../../../wire/http2/raw-http2-client.ts';
import { connectBare } from './bare-app.ts';
import { framesIn } from './sent-frames.ts';

const HEADER_MS = 7_000;
const IDLE_MS = 300_000;
const ROUTE = { timeouts: { connectMs: 1_000, responseMs: IDLE_MS, idleMs: IDLE_MS } };

/** An app with one request that an upstream has not answered. */
async function startBusy() {
  const app = connectBare({ limits: { headerTimeoutMs: HEADER_MS }, route: ROUTE });
  const post = frame(Type.HEADERS, Flag.END_HEADERS, 1, writeBlock(requestFields('POST', '/upload')));
  await app.send(PREFACE, frame(Type.SETTINGS, 0, 0), post);
  return app;
}

/** Whether the app was told that the connection takes no new requests. */
function goingAway({ sink }: { sink: { text: string } }): boolean {
  return framesIn(sink.text).some(({ type }) => type === Type.GOAWAY);
}

const HEAD = frame(
  Type.HEADERS,
  Flag.END_HEADERS | Flag.END_STREAM,
  3,
  writeBlock(requestFields('GET', '/')),
);

it.each([
  ['HEADERS', HEAD.subarray(0, 12)],
  ['a frame’s header', HEAD.subarray(0, 4)],
  [
    'a field block without its last CONTINUATION',
    frame(Type.HEADERS, Flag.END_STREAM, 3, HEAD.subarray(9, 12)),
  ],
  ['SETTINGS', frame(Type.SETTINGS, 0, 0, Buffer.alloc(6)).subarray(0, 11)],
])('%s has no more time beside an open request than on an idle connection', async (_, part) => {
  const app = await startBusy();
  await app.send(part);
  await app.clock.advance(HEADER_MS - 100);
  expect(goingAway(app)).toBe(false);

  await app.clock.advance(200);

  expect([goingAway(app), app.sink.destroyed]).toEqual([true, false]);
  // The request that was there goes on, and the connection ends with it.
  app.upstream().bring('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
  await app.clock.advance(IDLE_MS);
  expect(framesIn(app.sink.text).some(({ type, streamId }) => type === Type.DATA && streamId === 1)).toBe(
    true,
  );
  expect(app.sink.writableEnded).toBe(true);
});

it('a partial head that arrives octet by octet does not restart its timeout', async () => {
  const app = await startBusy();
  for (let at = 0; at < 8; at++) {
    await app.send(HEAD.subarray(at, at + 1));
    await app.clock.advance(HEADER_MS / 7);
  }
  expect(goingAway(app)).toBe(true);
});

it('a frame that arrived whole in time is not timed any more', async () => {
  const app = await startBusy();
  await app.send(HEAD.subarray(0, 12));
  await app.clock.advance(HEADER_MS - 100);
  await app.send(HEAD.subarray(12));
  await app.clock.advance(HEADER_MS * 2);
  expect(goingAway(app)).toBe(false);
});

it('the time for DATA is set by the request', async () => {
  const app = await startBusy();
  await app.send(frame(Type.DATA, 0, 1, 'slow body').subarray(0, 12));
  await app.clock.advance(HEADER_MS * 2);
  expect(goingAway(app)).toBe(false);
});
