/** How long one waits for a sidecar, whatever answers in its place. */

import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { waitUntilReady } from '../../src/sidecar/wait.ts';
import { ManualClock } from '../support/manual-clock.ts';

/** Says `text` again and again, in each turn of the event loop, until the connection ends: it is never idle. */
function sayForEver(socket: Socket, text: string, times = Number.POSITIVE_INFINITY): void {
  function say(left: number): void {
    if (!socket.destroyed && left > 0) socket.write(text, () => setImmediate(say, left - 1));
  }
  say(times);
}

/** Fewer than end a head, which may have 16 KiB: a busy machine makes many turns in the same time. */
const BYTES_OF_A_HEAD = 8192;

async function serve(onConnection: (socket: Socket, count: number) => void) {
  const clock = new ManualClock();
  const sockets: Socket[] = [];
  const closed: Promise<unknown>[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined).resume();
    closed.push(new Promise((resolve) => socket.once('close', resolve)));
    onConnection(socket, sockets.length);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return {
    clock,
    connections: () => sockets.length,
    allClosed: () => Promise.all(closed),
    async wait(timeoutMs: number): Promise<string> {
      const { signal } = new AbortController();
      return await waitUntilReady({ host: '127.0.0.1', port }, timeoutMs, clock, signal).then(
        () => 'ready',
        (error: Error) => error.message.replace(/^the sidecar at \S+ /, ''),
      );
    },
  };
}

const READY = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n';

describe('the limit holds, and nothing stays open, where the server', () => {
  it.each<[string, (socket: Socket) => void]>([
    ['sends interim answers without end', (socket) => sayForEver(socket, 'HTTP/1.1 102 Processing\r\n\r\n')],
    [
      'sends a head a byte at a time',
      (socket) => {
        socket.write('HTTP/1.1 200 OK\r\nA: ');
        sayForEver(socket, 'x', BYTES_OF_A_HEAD);
      },
    ],
    ['says nothing', () => undefined],
  ])('%s', async (_, answer) => {
    const { clock, connections, allClosed, wait } = await serve(answer);
    const waited = wait(500);
    await expect.poll(connections).toBe(1);
    await clock.advance(499);
    expect(clock.pendingTimers).toBe(1);
    await clock.advance(1);
    expect(await waited).toBe('was not ready within 500 ms: no answer');
    await allClosed();
    expect(connections()).toBe(1);
  });

  it('sends bodies without end', async () => {
    const { clock, connections, allClosed, wait } = await serve((socket) => {
      socket.write('HTTP/1.1 503 Service Unavailable\r\nTransfer-Encoding: chunked\r\n\r\n');
      sayForEver(socket, '1\r\nx\r\n');
    });
    const waited = wait(500);
    await expect.poll(connections).toBeGreaterThanOrEqual(3);
    await clock.advance(500);
    expect(await waited).toBe('was not ready within 500 ms: /readyz answered 503');
    await allClosed();
  });
});

it('a probe takes 2 s of a longer limit, and the next one is answered', async () => {
  const { clock, connections, allClosed, wait } = await serve((socket, count) => {
    if (count === 1) sayForEver(socket, 'HTTP/1.1 102 Processing\r\n\r\n');
    else socket.write(READY);
  });
  const waited = wait(60_000);
  await expect.poll(connections).toBe(1);
  await clock.advance(2000);
  expect(await waited).toBe('ready');
  expect(connections()).toBe(2);
  await allClosed();
  expect(clock.pendingTimers).toBe(0);
});

it('a limit of nothing asks once', async () => {
  const ready = await serve((socket) => void socket.write(READY));
  expect(await ready.wait(0)).toBe('ready');
  const silent = await serve(() => undefined);
  const waited = silent.wait(0);
  await expect.poll(silent.connections).toBe(1);
  await silent.clock.advance(2000);
  expect(await waited).toBe('was not ready within 0 ms: no answer');
});

it('what was answered last is told, though the last probe had no time for an answer', async () => {
  const { clock, connections, wait } = await serve((socket, count) => {
    if (count === 1) socket.write('HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n');
  });
  const waited = wait(500);
  await expect.poll(connections).toBe(2);
  await clock.advance(500);
  expect(await waited).toBe('was not ready within 500 ms: /readyz answered 503');
});
