import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { writeBlock } from '../../../wire/http2/field-block.ts';
import { Flag, frame, PREFACE, Type } from '../../../wire/http2/frames.ts';
import { requestFields } from '../../../wire/http2/raw-http2-client.ts';
import { connectBare } from './bare-app.ts';
import { framesIn } from './sent-frames.ts';

const IDLE_MS = 300_000;
const COUNTED = 'requests_total{route="api",method="GET",code="200"}';

/** Two requests of one connection whose upstreams have not answered. */
async function startTwo(
  route = { timeouts: { connectMs: 1_000, responseMs: IDLE_MS * 2, idleMs: IDLE_MS } },
) {
  const app = connectBare({ route });
  const get = (streamId: number) =>
    frame(
      Type.HEADERS,
      Flag.END_HEADERS | Flag.END_STREAM,
      streamId,
      writeBlock(requestFields('GET', '/api')),
    );
  await app.send(PREFACE, frame(Type.SETTINGS, 0, 0), get(1), get(3));
  return {
    ...app,
    async answer(index: number) {
      app.upstream(index).bring('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
      await turn();
      await turn();
    },
    counted: () => app.metric(COUNTED),
    inFlight: () => app.load.inFlight,
  };
}

it('an HTTP/2 request is counted once its answer has left the socket, not while that still holds it', async () => {
  const { answer, counted, inFlight, sink } = await startTwo();
  sink.stuck = true;
  await answer(0);
  expect(framesIn(sink.text).some(({ type }) => type === Type.DATA)).toBe(true);
  expect([inFlight(), await counted()]).toEqual([2, 0]);

  sink.unblock();
  await turn();

  expect([inFlight(), await counted()]).toEqual([1, 1]);
});

it('an HTTP/2 request is counted at once when the system takes its answer at once', async () => {
  const { answer, counted, inFlight } = await startTwo();
  await answer(0);
  expect([inFlight(), await counted()]).toEqual([1, 1]);
});

it('the duration of an HTTP/2 request ends when its answer has left', async () => {
  const { answer, clock, metric, sink } = await startTwo();
  sink.stuck = true;
  await answer(0);
  await clock.advance(7_000);
  sink.unblock();
  await turn();
  expect(await metric('request_duration_seconds_sum{route="api",code="2xx"}')).toBe(7);
});

it('an app that reads nothing does not keep its request open beyond the timeout', async () => {
  const { answer, clock, counted, inFlight, sink } = await startTwo();
  sink.stuck = true;
  await answer(0);
  await clock.advance(IDLE_MS - 1);
  expect([inFlight(), await counted()]).toEqual([2, 0]);

  await clock.advance(1);

  expect([inFlight(), await counted()]).toEqual([1, 1]);
  sink.unblock();
  await turn();
  expect([inFlight(), await counted()]).toEqual([1, 1]);
});

it('a request whose app left during the answer is counted then and once', async () => {
  const { answer, counted, inFlight, sink } = await startTwo();
  sink.stuck = true;
  await answer(0);

  sink.destroy();
  await turn();

  expect([inFlight(), await counted()]).toEqual([0, 1]);
});

it('a request whose connection ended before its last frame was flushed is counted once', async () => {
  const { counted, inFlight, sink, upstream } = await startTwo();
  upstream(0).bring('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
  sink.destroy();
  await turn();
  expect([inFlight(), await counted()]).toEqual([0, 1]);
});
