import { expect, it } from 'vitest';
import { ManualClock, settle } from '../support/manual-clock.ts';
import { get, ok } from './messages.ts';
import { answering, startUpstream } from './raw-upstream.ts';
import { type Sidecar, startSidecar } from './sidecar.ts';

async function start() {
  const clock = new ManualClock();
  const upstream = await startUpstream(answering(ok('fine')));
  return { clock, sidecar: await startSidecar({ upstream, clock, limits: { keepAliveTimeoutMs: 600_000 } }) };
}

/** A wait of a minute, and whether it is over. */
function waiting(sidecar: Sidecar) {
  const wait = { over: false, ended: sidecar.proxy.whenUnused(60_000) };
  void wait.ended.then(() => {
    wait.over = true;
  });
  return wait;
}

it('a graceful stop ends at once when no app is connected', async () => {
  const { clock, sidecar } = await start();
  const before = clock.pendingTimers;
  await sidecar.proxy.whenUnused(60_000);
  expect(clock.pendingTimers).toBe(before);
});

it('a graceful stop serves connected apps until the last has left', async () => {
  const { sidecar } = await start();
  const [one, other] = [await sidecar.connect(), await sidecar.connect()];
  await one.send(get('/')).response();
  await other.send(get('/')).response();
  const wait = waiting(sidecar);
  one.end();
  await one.closed();
  await settle();
  expect(wait.over).toBe(false);
  expect((await other.send(get('/')).response()).body).toBe('fine');
  other.end();
  await wait.ended;
});

it('a graceful stop waits up to a limit and serves on afterwards', async () => {
  const { clock, sidecar } = await start();
  const client = await sidecar.connect();
  await client.send(get('/')).response();
  const wait = waiting(sidecar);
  await clock.advance(59_999);
  expect(wait.over).toBe(false);
  await clock.advance(1);
  await wait.ended;
  expect((await client.send(get('/')).response()).body).toBe('fine');
});
