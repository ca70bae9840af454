/** What redirected connections begin with is held until it is known who serves them, and not for as long as they last. */

import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { garbageCollector } from '../../support/collect-garbage.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { until } from '../../support/until.ts';
import { volume } from '../../support/volume.ts';
import type { RawClient } from '../../wire/raw-client.ts';
import { startTlsUpstream } from '../tls/intercepting.ts';
import { redirecting } from './redirecting.ts';

const SERVER_FIRST_TIMEOUT_MS = 1_000;

const CONNECTIONS = volume(20, 40);
const FIRST_BYTES = 48_000;
/** Of each connection: what the test's own client keeps, and less than what comes first. */
const MAX_KEPT_BYTES = 6_000;

let collect: () => void;
const { poolSize } = Buffer;

beforeAll(() => {
  // Each buffer by itself: where they are cut from one piece, who holds a small one holds them all.
  Buffer.poolSize = 0;
  collect = garbageCollector();
});

afterAll(() => {
  Buffer.poolSize = poolSize;
});

/** What the memory of buffers grows by, for each of the connections that are made meanwhile. */
async function keptOfEach(make: () => Promise<unknown>): Promise<number> {
  // What is made once.
  await make();
  const before = heldBytes();
  for (let count = 0; count < CONNECTIONS; count++) await make();
  return (heldBytes() - before) / CONNECTIONS;
}

function heldBytes(): number {
  // Buffers are let go once those who held them have been.
  for (let round = 0; round < 3; round++) collect();
  return process.memoryUsage().arrayBuffers;
}

/** Counts what each connection says, and keeps none of it. */
async function startServer(greeting: Buffer) {
  const accepted: Socket[] = [];
  let received = 0;
  const server = createServer((socket) => {
    accepted.push(socket);
    socket.on('error', () => {});
    socket.on('data', ({ length }) => {
      received += length;
    });
    if (greeting.length > 0) socket.write(greeting);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    for (const socket of accepted) socket.destroy();
  });
  const { port } = server.address() as AddressInfo;
  return { original: { host: '127.0.0.1', port }, received: () => received };
}

describe('a connection passed through unread keeps in memory nothing', () => {
  it('of the first bytes of the app', async () => {
    const server = await startServer(Buffer.alloc(0));
    const { connected } = await redirecting({ original: server.original });
    // A request without an end is held for as long as it may still name its host.
    const first = Buffer.from(`GET /${'a'.repeat(FIRST_BYTES)}`);
    let sent = 0;
    const kept = await keptOfEach(async () => {
      (await connected()).send(first);
      sent += first.length;
      await until(() => server.received() === sent);
    });
    expect(kept).toBeLessThan(MAX_KEPT_BYTES);
  });

  it('of the first bytes of its server', async () => {
    const clock = new ManualClock();
    const server = await startServer(Buffer.alloc(FIRST_BYTES, 'b'));
    const { connected } = await redirecting({ original: server.original, clock });
    const kept = await keptOfEach(async () => {
      const { received } = await connected().then(discarding);
      await clock.advance(SERVER_FIRST_TIMEOUT_MS);
      await until(() => received.count === FIRST_BYTES);
    });
    expect(kept).toBeLessThan(MAX_KEPT_BYTES);
  });
});

it('a connection to a listed host does not keep its ClientHello in memory', async () => {
  const upstream = await startTlsUpstream('http1');
  const { secured } = await redirecting({
    original: { host: '127.0.0.1', port: upstream.port },
    caFile: upstream.caFile,
  });
  const protocols = Array.from({ length: 50 }, (_, index) => `${index}`.padStart(250, 'x'));
  const short = await keptOfEach(() => secured({ ALPNProtocols: ['http/1.1'] }));
  const long = await keptOfEach(() => secured({ ALPNProtocols: ['http/1.1', ...protocols] }));
  // What both keep is TLS's own; the client keeps what it offers, in the form that is sent.
  const offered = protocols.length * 251;
  expect(long - short - offered).toBeLessThan(MAX_KEPT_BYTES);
});

function discarding(client: RawClient): RawClient {
  client.received.discard();
  return client;
}
