import { describe, expect, it } from 'vitest';
import { ShiftedClock } from '../support/shifted-clock.ts';
import { get, message, ok, post } from './messages.ts';
import type { RawClient } from './raw-client.ts';
import { type RawUpstream, startUpstream, type UpstreamConnection } from './raw-upstream.ts';
import { type Sidecar, startSidecar } from './sidecar.ts';

const HOUR_MS = 3_600_000;

interface Warm {
  readonly upstream: RawUpstream;
  readonly sidecar: Sidecar;
  readonly client: RawClient;
  readonly clock: ShiftedClock;
  /** Of the upstream; it has carried a request and is idle. */
  readonly idle: UpstreamConnection;
}

/** An upstream that answers with the number of the connection, and one connection to it in the pool. */
async function startWarm(responseFields: readonly string[] = [], transport?: 'plain'): Promise<Warm> {
  const clock = new ShiftedClock();
  const upstream = await startUpstream(async (arrived) => {
    await arrived.body();
    arrived.answer(ok(String(upstream.connections.indexOf(arrived.connection)), ...responseFields));
  }, transport);
  const sidecar = await startSidecar({
    upstream,
    clock,
    route: { timeouts: { connectMs: HOUR_MS, responseMs: HOUR_MS, idleMs: HOUR_MS } },
    limits: { headerTimeoutMs: HOUR_MS, keepAliveTimeoutMs: HOUR_MS },
  });
  const client = await sidecar.connect();
  await client.send(get('/warm')).response();
  const [idle] = upstream.connections;
  if (idle === undefined) throw new Error('nothing has connected');
  return { upstream, sidecar, client, clock, idle };
}

const REQUESTS = [
  ['GET', get('/')],
  ['POST', post('/', 'not to be sent twice')],
] as const;

describe.each(REQUESTS)('%s uses a new connection', (_, bytes) => {
  it('when the end of the idle connection is read in the same event loop turn', async () => {
    const { client, idle } = await startWarm();
    const sent = new Promise<void>((resolve) => {
      // Said before the sidecar's sockets are polled again, so that both are read in one turn, the end first.
      idle.socket.once('finish', () => {
        client.send(bytes);
        resolve();
      });
    });

    idle.end();
    await sent;

    expect(await client.response()).toMatchObject({ status: 200, body: '1' });
  });

  it('when the upstream closed the idle connection while the process was stopped', async () => {
    const { client, clock, idle } = await startWarm();
    clock.advance(400);
    // Read in one turn, the request first.
    client.send(bytes);
    idle.end();

    expect(await client.response()).toMatchObject({ status: 200, body: '1' });
  });

  it('when the idle connection is given up in the same event loop turn', async () => {
    const { client, clock } = await startWarm();
    client.send(bytes);
    clock.advance(60_000);

    expect(await client.response()).toMatchObject({ status: 200, body: '1' });
  });

  it('after the machine was suspended for longer than a connection may be idle', async () => {
    const { client, clock } = await startWarm();
    clock.suspend(60_000);

    expect(await client.send(bytes).response()).toMatchObject({ status: 200, body: '1' });
  });

  it('when none of it could be written to the idle connection', async () => {
    const { client, idle } = await startWarm();
    client.send(bytes);
    idle.reset();

    expect(await client.response()).toMatchObject({ status: 200, body: '1' });
  });
});

it.each(REQUESTS)(
  'bytes that the upstream sent unasked while the process was stopped are not the answer to a %s',
  async (_, bytes) => {
    // TLS writes a little later.
    const { client, clock, idle } = await startWarm([], 'plain');
    clock.advance(2_000);
    // Read in one turn, the request first.
    client.send(bytes);
    idle.send(message('HTTP/1.1 408 Request Timeout', ['Content-Length: 0', 'Connection: close']));

    expect(await client.response()).toMatchObject({ status: 200, body: '1' });
  },
);
it('a PUT with a body too large to be kept uses a new connection when the idle one was closed', async () => {
  const { client, clock, idle } = await startWarm();
  clock.advance(400);
  // Read in one turn, the request first. It could not be sent again from its beginning.
  client.send(post('/', 'x'.repeat(100_000)).replace('POST', 'PUT'));
  idle.end();

  expect(await client.response()).toMatchObject({ status: 200, body: '1' });
});

it('an idle connection on which the upstream sends bytes unasked is not used', async () => {
  const { client, idle, upstream } = await startWarm();
  idle.send(message('HTTP/1.1 408 Request Timeout', ['Content-Length: 0']));
  await idle.closed();

  expect(await client.send(post('/', 'x')).response()).toMatchObject({ status: 200, body: '1' });
  expect(upstream.connections).toHaveLength(2);
});

describe('the age of an upstream connection', () => {
  it('is limited, so that a changed address is used everywhere in the end', async () => {
    const { client, clock, upstream } = await startWarm();
    for (let minute = 0; minute < 3; minute += 0.75) {
      clock.advance(45_000);
      await client.send(get('/')).response();
    }
    expect(upstream.connections).toHaveLength(1);

    for (let minute = 3; minute < 6; minute += 0.75) {
      clock.advance(45_000);
      await client.send(get('/')).response();
    }

    expect(upstream.connections).toHaveLength(2);
  });

  it('never cuts a request', async () => {
    const clock = new ShiftedClock();
    const upstream = await startUpstream();
    const sidecar = await startSidecar({
      upstream,
      clock,
      route: { timeouts: { connectMs: HOUR_MS, responseMs: HOUR_MS, idleMs: HOUR_MS } },
    });
    const client = await sidecar.connect();
    client.send(get('/'));
    const arrived = await upstream.request();
    arrived.answer(message('HTTP/1.1 200 OK', ['Content-Length: 10'], 'hello'));
    await client.received.contains('hello');

    clock.advance(600_000);
    arrived.answer('world');

    expect((await client.response()).body).toBe('helloworld');
    expect(await arrived.connection.closed()).toBe('end');
  });
});

it('a connection is reused when the upstream keeps it for only one second', async () => {
  const { client, upstream } = await startWarm(['Keep-Alive: timeout=1']);

  expect((await client.send(get('/')).response()).body).toBe('0');
  expect(upstream.connections).toHaveLength(1);
});
