import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { FakeBearer } from './fake-bearer.ts';
import { get, message } from './messages.ts';
import { startUpstream } from './raw-upstream.ts';
import { startSidecar } from './sidecar.ts';

const HOUR_MS = 3_600_000;

/** As many octets as a TLS record has at most (RFC 8446 §5.1). */
const RECORD = Buffer.alloc(16_384, 'r');

it('an answer that pauses at the end of a TLS record is passed on at once', async () => {
  const upstream = await startUpstream((arrived) => {
    arrived.answer(message('HTTP/1.1 200 OK', ['Content-Length: 1000000']));
  });
  const sidecar = await startSidecar({ upstream });
  const client = await sidecar.connect();
  await client.send(get('/')).head();
  const [connection] = upstream.connections;

  for (const records of [1, 2, 3, 4, 5]) {
    connection?.send(Buffer.concat(Array.from({ length: records }, () => RECORD)));
    expect(await client.received.exactly(records * RECORD.length)).toHaveLength(records * RECORD.length);
  }
});

it('an answer that breaks off at the end of a TLS record is passed on as far as it came', async () => {
  const upstream = await startUpstream((arrived) => {
    arrived.answer(message('HTTP/1.1 200 OK', ['Content-Length: 1000000']));
    arrived.connection.send(Buffer.concat([RECORD, RECORD]));
    arrived.connection.end();
  });
  const sidecar = await startSidecar({ upstream });
  const client = await sidecar.connect();
  await client.send(get('/')).head();

  await client.closed();

  const [, body] = client.received.text.split('\r\n\r\n');
  expect(body).toHaveLength(2 * RECORD.length);
});

it('a 401 with a head larger than a TLS record, pausing at a record’s end, is passed on if no other token comes', async () => {
  const head = message('HTTP/1.1 401 No', ['Content-Length: 1000000', `X-Large: ${'x'.repeat(20_000)}`]);
  const upstream = await startUpstream((arrived) => {
    // Over TLS these leave as records of which the last but one is whole: all of them come in one read.
    arrived.answer(Buffer.concat([Buffer.from(head, 'latin1'), RECORD]));
  });
  const bearer = new FakeBearer({
    async replace() {
      await turn();
      await turn();
      return undefined;
    },
  });
  // No bound in time has what waits passed on at last.
  const timeouts = { connectMs: HOUR_MS, responseMs: HOUR_MS, idleMs: HOUR_MS };
  const sidecar = await startSidecar({ upstream, bearer, route: { timeouts } });
  const client = await sidecar.connect();

  expect((await client.send(get('/')).head()).status).toBe(401);
  expect(await client.received.exactly(RECORD.length)).toHaveLength(RECORD.length);
});
