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

it('a sidecar that no app is connected to is unused at once', async () => {
  const { clock, sidecar } = await start();
  const before = clock.pendingTimers;
  await sidecar.proxy.whenUnused(60_000);
  expect(clock.pendingTimers).toBe(before);
});

it('one that apps are connected to is unused when the last has gone, and serves until then', async () => {
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

it('the wait has a bound, after which it serves on', async () => {
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
