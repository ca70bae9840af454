import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { startAdminServer } from '../../src/admin/admin-server.ts';
import { probes } from '../../src/admin/probes.ts';
import { garbageCollector } from '../support/collect-garbage.ts';
import { captureLog } from '../support/log-capture.ts';
import { ManualClock } from '../support/manual-clock.ts';

/** A sidecar that has no token yet. */
function starting() {
  const clock = new ManualClock();
  const first = Promise.withResolvers<void>();
  let started = false;
  const endpoints = probes(
    {
      missing: () => [{ part: 'credential', name: 'default', detail: 'no token has been obtained yet' }],
      started: () => started,
      draining: () => false,
      whenStarted: () => first.promise,
    },
    clock,
  );
  return {
    clock,
    endpoints,
    due: endpoints['/startupz'].due as NonNullable<(typeof endpoints)['/startupz']['due']>,
    start(): void {
      started = true;
      first.resolve();
    },
  };
}

async function serve(endpoints: ReturnType<typeof probes>) {
  const server = await startAdminServer({ host: '127.0.0.1', port: 0 }, endpoints, captureLog().log);
  onTestFinished(() => server.close());
  return {
    ask() {
      const socket = connect(server.address.port, '127.0.0.1');
      onTestFinished(() => void socket.destroy());
      socket.on('error', () => undefined).write('GET /startupz HTTP/1.1\r\nHost: localhost\r\n\r\n');
      return socket;
    },
  };
}

const stayed = (): void => undefined;

it('/startupz answers as soon as the first token is there, and says after a moment that it is not', async () => {
  const { clock, endpoints, start } = starting();
  const { ask } = await serve(endpoints);
  const early = once(ask(), 'data');
  await expect.poll(() => clock.pendingTimers).toBe(1);
  await clock.advance(800);
  expect(String(await early)).toMatch(/^HTTP\/1\.1 503 /);
  const inTime = [once(ask(), 'data'), once(ask(), 'data')];
  await expect.poll(() => clock.pendingTimers).toBe(2);
  // No timer of this clock fires.
  start();
  for (const answer of await Promise.all(inTime)) expect(String(answer)).toMatch(/^HTTP\/1\.1 200 /);
  expect(clock.pendingTimers).toBe(0);
  expect(String(await once(ask(), 'data'))).toMatch(/^HTTP\/1\.1 200 /);
});

it('a probe whose connection has closed no longer waits', async () => {
  const { clock, endpoints } = starting();
  const { ask } = await serve(endpoints);
  const sockets = Array.from({ length: 10 }, ask);
  await expect.poll(() => clock.pendingTimers).toBe(10);
  for (const socket of sockets) socket.resetAndDestroy();
  await expect.poll(() => clock.pendingTimers).toBe(0);
});

it('probes answered before the first token leave nothing', async () => {
  const { clock, due, start } = starting();
  const collect = garbageCollector();
  const heldBytes = (): number => {
    collect();
    return process.memoryUsage().heapUsed;
  };
  async function batches(count: number): Promise<void> {
    for (let batch = 0; batch < count; batch++) {
      const asked = Array.from({ length: 100 }, () => due(stayed));
      await clock.advance(800);
      await Promise.all(asked);
    }
  }
  await batches(10);
  const before = heldBytes();
  await batches(100);
  // 10 000 probes; each kept 600 bytes.
  expect(heldBytes() - before).toBeLessThan(1e6);
  const waiting = due(stayed);
  start();
  await waiting;
});
