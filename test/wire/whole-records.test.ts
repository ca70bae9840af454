import { expect, it } from 'vitest';
import { get, message } from './messages.ts';
import { startUpstream } from './raw-upstream.ts';
import { startSidecar } from './sidecar.ts';

/** As many octets as a TLS record has at most (RFC 8446 §5.1). */
const RECORD = Buffer.alloc(16_384, 'r');

it('an answer that pauses after a whole record waits for nothing', async () => {
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

it('an answer that breaks off after a whole record is passed on so far', async () => {
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
