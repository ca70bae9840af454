import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { boundCallerConnections, drain } from '../../src/callers/caller-connections.ts';
import { https } from '../../src/platform/net/node-https.ts';
import { captureLog } from '../support/log-capture.ts';
import { ManualClock } from '../support/manual-clock.ts';

/** A server with one connection whose handshake does not begin. */
async function start() {
  const connections = boundCallerConnections({
    most: 8,
    onDropped: () => undefined,
    log: captureLog().log,
  });
  const server = https.createServer();
  server.prependListener('connection', (socket: Socket) => connections.admit(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const arrived = once(server, 'connection');
  const silent = connect(port, '127.0.0.1');
  onTestFinished(() => {
    silent.destroy();
    server.close();
  });
  await arrived;
  silent.on('error', () => undefined).resume();
  const clock = new ManualClock();
  let isOver = false;
  return {
    clock,
    silent,
    isOver: () => isOver,
    drain: (closeUnused: boolean) =>
      drain(server, connections, { delayMs: 5000, timeoutMs: 10_000, closeUnused, clock }).then(() => {
        isOver = true;
      }),
  };
}

it('a drain waits for a handshake under way, and ends it at its timeout', async () => {
  const { clock, drain: begin, isOver, silent } = await start();
  const closed = once(silent, 'close');
  const drained = begin(false);
  await clock.advance(14_999);
  expect([isOver(), silent.destroyed]).toEqual([false, false]);
  await clock.advance(1);
  await drained;
  await closed;
});

it('a drain ends right after the delay if callers have gone elsewhere', async () => {
  const { clock, drain: begin, silent } = await start();
  const closed = once(silent, 'close');
  const drained = begin(true);
  await clock.advance(4999);
  expect(silent.destroyed).toBe(false);
  await clock.advance(1);
  await drained;
  await closed;
});
