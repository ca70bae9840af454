import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { type MountedSecret, openLiveSecret } from '../../../src/platform/mounted/mounted-secret.ts';
import { systemClock } from '../../../src/platform/time/clock.ts';
import { mountSecret } from '../../support/kubelet-secret.ts';
import { ManualClock } from '../../support/manual-clock.ts';

type LiveSecret = Awaited<ReturnType<typeof openLiveSecret>>;

const NAMES = ['client_id', 'client_secret'] as const;

async function open(directory: string, clock = systemClock, pollMs = 3_600_000) {
  const secret = await openLiveSecret(directory, NAMES, { clock, pollMs });
  onTestFinished(() => secret.close());
  return secret;
}

/** The next reading that the predicate accepts. */
function reading(secret: LiveSecret, accept: (reading: MountedSecret) => boolean): Promise<MountedSecret> {
  return new Promise((resolve) => {
    const end = secret.onChange((next) => {
      if (!accept(next)) return;
      end();
      resolve(next);
    });
  });
}

const hasSecret = (value: string) => (next: MountedSecret) =>
  next.state === 'loaded' && next.values['client_secret'] === value;

it('announces every swap of the kubelet, not only the first', async () => {
  const mounted = await mountSecret({ client_id: 'shop', client_secret: 'v0' });
  const secret = await open(mounted.directory);
  for (let n = 1; n <= 5; n++) {
    const next = reading(secret, hasSecret(`v${n}`));
    await mounted.update({ client_id: 'shop', client_secret: `v${n}` });
    await next;
    expect(secret.current()).toMatchObject({ values: { client_secret: `v${n}` } });
  }
});

it('announces nothing when the content stays the same', async () => {
  const mounted = await mountSecret({ client_id: 'shop', client_secret: 'v0' });
  const secret = await open(mounted.directory);
  const seen: MountedSecret[] = [];
  secret.onChange((next) => seen.push(next));
  await mounted.update({ client_id: 'shop', client_secret: 'v0' });
  const next = reading(secret, hasSecret('v1'));
  await mounted.update({ client_id: 'shop', client_secret: 'v1' });
  await next;
  expect(seen).toHaveLength(1);
});

it('announces that a file is gone, and that it is back', async () => {
  const mounted = await mountSecret({ client_id: 'shop', client_secret: 'v0' });
  const secret = await open(mounted.directory);
  const gone = reading(secret, ({ state }) => state === 'missing');
  await mounted.update({ client_id: 'shop' });
  await gone;
  const back = reading(secret, hasSecret('v1'));
  await mounted.update({ client_id: 'shop', client_secret: 'v1' });
  await back;
});

it('sees by polling what no notification tells, such as a directory that appears later', async () => {
  const mounted = await mountSecret({ client_id: 'shop', client_secret: 'v0' });
  const later = join(mounted.directory, 'later');
  const clock = new ManualClock();
  const secret = await open(later, clock, 30_000);
  expect(secret.current().state).toBe('missing');
  const made = join(mounted.directory, 'made');
  await mkdir(made);
  await writeFile(join(made, 'client_id'), 'shop');
  await writeFile(join(made, 'client_secret'), 'v1');
  await rename(made, later);
  const next = reading(secret, hasSecret('v1'));
  await clock.advance(30_000);
  await next;
});

it('is no older than the last look that was asked for, whatever the notifications say', async () => {
  const mounted = await mountSecret({ client_id: 'shop', client_secret: 'v0' });
  const secret = await open(mounted.directory, new ManualClock(), 30_000);
  const seen: MountedSecret[] = [];
  secret.onChange((next) => seen.push(next));
  await mounted.update({ client_id: 'shop', client_secret: 'v1' });
  await Promise.all([secret.refresh(), secret.refresh()]);
  expect(secret.current()).toMatchObject({ values: { client_secret: 'v1' } });
  expect(seen).toHaveLength(1);
});

it('sets no timer and announces nothing after close', async () => {
  const mounted = await mountSecret({ client_id: 'shop', client_secret: 'v0' });
  const clock = new ManualClock();
  const secret = await openLiveSecret(mounted.directory, NAMES, { clock, pollMs: 30_000 });
  secret.close();
  expect(clock.pendingTimers).toBe(0);
});
