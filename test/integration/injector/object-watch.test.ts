import { expect, it, onTestFinished } from 'vitest';
import type { ApiObject } from '../../../src/platform/kubernetes/api.ts';
import { connectKubernetes } from '../../../src/platform/kubernetes/client.ts';
import { watchObject } from '../../../src/platform/kubernetes/collection-watch.ts';
import { captureLog } from '../../support/log-capture.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { until } from '../../support/until.ts';
import { FakeKubernetes } from './fake-kubernetes.ts';

const SECRETS = '/api/v1/namespaces/default/secrets';

type Secret = ApiObject & { readonly data?: { readonly key: string } };

async function start(fail?: (fake: FakeKubernetes) => void) {
  const fake = await FakeKubernetes.start();
  const clock = new ManualClock();
  const { log, lines } = captureLog();
  fail?.(fake);
  const seen: (string | undefined)[] = [];
  let wake: (() => void) | undefined;
  const api = connectKubernetes(await fake.kubeconfig(), clock);
  const end = watchObject<Secret>(api, SECRETS, 'shop', { clock, random: () => 0.5, log }, (object) => {
    seen.push(object?.data?.key);
    wake?.();
  });
  onTestFinished(end);
  return {
    fake,
    clock,
    lines,
    end,
    seen,
    put: (key: string) => fake.put(SECRETS, { metadata: { name: 'shop' }, data: { key } }),
    async saw(...keys: readonly (string | undefined)[]) {
      while (seen.length < keys.length) await new Promise<void>((resolve) => (wake = resolve));
      expect(seen).toEqual(keys);
    },
    watching: () => fake.until(() => fake.watches === 1),
    /** Waits until the watch has broken off, and then for as long as it waits at most. */
    async retried(failures: number) {
      await until(() => lines.filter((line) => line.includes('watch broke off')).length >= failures);
      await clock.advance(30_000);
    },
  };
}

it('sees the object as it is, its changes and its end, and no other object', async () => {
  const { put, fake, saw, watching } = await start();
  await saw(undefined);
  await watching();
  fake.put(SECRETS, { metadata: { name: 'other' } });
  put('one');
  await saw(undefined, 'one');
  fake.delete(SECRETS, 'shop');
  await saw(undefined, 'one', undefined);
});

it('goes on where the stream ended, without listing again', async () => {
  const { put, fake, clock, saw, watching } = await start();
  await watching();
  put('one');
  await saw(undefined, 'one');
  await clock.advance(60_000);
  fake.endWatches();
  await fake.until(() => fake.watches === 0);
  put('two');
  await saw(undefined, 'one', 'two');
  expect(fake.requests.filter((request) => !request.includes('watch='))).toHaveLength(1);
});

it('lists anew when the server has forgotten the past (410)', async () => {
  const { put, fake, clock, saw, watching, retried } = await start();
  await watching();
  await clock.advance(60_000);
  fake.expireWatches();
  put('one');
  await retried(1);
  await saw(undefined, 'one');
  await watching();
  put('two');
  await saw(undefined, 'one', 'two');
});

it('lists anew when the stream says that it has (an ERROR event of 410)', async () => {
  const { fake, saw, watching, retried } = await start();
  await watching();
  fake.sendToWatches({ type: 'ERROR', object: { kind: 'Status', code: 410, message: 'too old' } });
  fake.endWatches();
  await retried(1);
  await saw(undefined, undefined);
});

it('survives a connection that breaks off', async () => {
  const { put, fake, saw, watching, retried } = await start();
  await watching();
  fake.breakWatches();
  await retried(1);
  await watching();
  put('one');
  await saw(undefined, 'one');
});

it('survives an answer that is not JSON', async () => {
  const { put, fake, saw, watching, retried } = await start();
  await watching();
  fake.sendToWatches('half an obje' as never);
  fake.sendToWatches({ type: 'ERROR', object: {} });
  fake.endWatches();
  await retried(1);
  await watching();
  put('one');
  await saw(undefined, 'one');
});

it('waits longer with each failure', async () => {
  const { lines, saw, retried } = await start((fake) => {
    for (const failure of [{ status: 500 }, 'disconnect', { status: 503 }] as const)
      fake.failNext(/^GET/, failure);
  });
  for (const failures of [1, 2, 3]) await retried(failures);
  await saw(undefined);
  const waits = lines.map((line) => JSON.parse(line).retryInMs).filter((ms) => ms !== undefined);
  expect(waits).toEqual([500, 1000, 2000]);
});

it('waits as long as the server asks (429)', async () => {
  const { lines, saw, retried } = await start((fake) =>
    fake.failNext(/^GET/, { status: 429, retryAfter: '7' }),
  );
  await retried(1);
  await saw(undefined);
  expect(JSON.parse(lines[0] as string)).toMatchObject({ retryInMs: 7000 });
});

it('does not open again at once what the server ends at once', async () => {
  const { fake, clock, watching } = await start();
  await watching();
  for (let turn = 0; turn < 3; turn++) {
    const asked = fake.requests.length;
    fake.endWatches();
    await fake.until(() => fake.watches === 0);
    await until(() => clock.pendingTimers !== 0);
    expect(fake.requests.length).toBe(asked);
    await clock.advance(30_000);
    await watching();
  }
});

it('opens a stream again that has been silent for too long', async () => {
  const { fake, clock, saw, watching } = await start();
  await saw(undefined);
  await watching();
  const asked = fake.requests.length;
  await clock.advance(160_000);
  await fake.until(() => fake.requests.length > asked);
});

it('ends when it is told to, also in the middle of a stream', async () => {
  const { fake, clock, end, watching } = await start();
  await watching();
  end();
  await fake.until(() => fake.watches === 0);
  await clock.advance(60_000);
  expect(clock.pendingTimers).toBe(0);
});
