import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { writeBlock } from '../../../wire/http2/field-block.ts';
import { Flag, frame, PREFACE, Setting, Type } from '../../../wire/http2/frames.ts';
import { requestFields } from '../../../wire/http2/raw-http2-client.ts';
import { connectBare } from './bare-app.ts';

const IDLE_MS = 300_000;
const ROUTE = { timeouts: { connectMs: 1_000, responseMs: IDLE_MS, idleMs: IDLE_MS } };

function unforeseen(): never {
  throw new Error('unforeseen');
}

/** A request that was answered, of a connection on which counting it goes wrong. */
async function startFaulty({ windowBytes = 65_535, stuck = false } = {}) {
  const app = connectBare({ route: ROUTE });
  const window = Buffer.alloc(6);
  window.writeUInt16BE(Setting.INITIAL_WINDOW_SIZE);
  window.writeUInt32BE(windowBytes, 2);
  const flags = Flag.END_HEADERS | Flag.END_STREAM;
  const get = frame(Type.HEADERS, flags, 1, writeBlock(requestFields('GET', '/api')));
  await app.send(PREFACE, frame(Type.SETTINGS, 0, 0, window), get);
  app.sink.stuck = stuck;
  const { observer } = app.context.snapshot().destinations.find({
    method: 'GET',
    target: '/api',
    fields: [],
  } as never).route;
  Object.assign(observer, { ended: unforeseen });
  app.upstream().bring('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
  return app;
}

/** A fault costs its connection: nothing that is not caught, which would end the process, and this test. */
function expectEnded({ sink, lines }: Awaited<ReturnType<typeof startFaulty>>): void {
  expect(sink.destroyed).toBe(true);
  expect(JSON.stringify(lines)).toContain('unforeseen');
}

it('an internal fault closes the HTTP/2 connection when it happens while output is sent at the end of a turn', async () => {
  const app = await startFaulty();
  expect(app.sink.destroyed).toBe(false);
  await turn();
  await turn();
  expectEnded(app);
});

it('an internal fault closes the HTTP/2 connection when it happens while the last of an answer is sent', async () => {
  const app = await startFaulty({ stuck: true });
  await turn();
  await turn();
  expect(app.sink.destroyed).toBe(false);
  app.sink.unblock();
  await turn();
  expectEnded(app);
});

it('an internal fault closes the HTTP/2 connection when it happens at the timeout for reading an answer', async () => {
  const app = await startFaulty({ stuck: true });
  await app.clock.advance(IDLE_MS);
  expectEnded(app);
});

it('an internal fault closes the HTTP/2 connection when it happens at the timeout for opening the window', async () => {
  const app = await startFaulty({ windowBytes: 0 });
  await app.clock.advance(IDLE_MS - 1);
  expect(app.sink.destroyed).toBe(false);
  await app.clock.advance(1);
  expectEnded(app);
});
