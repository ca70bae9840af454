import { expect, it, onTestFinished } from 'vitest';
import { connectKubernetes } from '../../../src/platform/kubernetes/client.ts';
import { contendForLeadership } from '../../../src/platform/kubernetes/leadership.ts';
import { captureLog } from '../../support/log-capture.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { FakeKubernetes } from './fake-kubernetes.ts';
import { passUntil } from './passing-time.ts';

type Leadership = ReturnType<typeof contendForLeadership>;

const LEASE = '/apis/coordination.k8s.io/v1/namespaces/system/leases/injector';

async function start() {
  const fake = await FakeKubernetes.start();
  const clock = new ManualClock();
  const kubeconfig = await fake.kubeconfig();
  const elected: string[] = [];
  const { log, lines } = captureLog();
  return {
    fake,
    lines,
    clock,
    elected,
    spec: () => fake.get(LEASE)?.['spec'] as Readonly<Record<string, unknown>> | undefined,
    contend(identity: string): Leadership {
      const options = {
        namespace: 'system',
        name: 'injector',
        identity,
        clock,
        random: () => 0.5,
        log,
      };
      const leadership = contendForLeadership(connectKubernetes(kubeconfig, clock), options, () => {
        elected.push(identity);
      });
      onTestFinished(() => leadership.close());
      return leadership;
    },
  };
}

it('of two, one is the leader, and stays it', async () => {
  const { clock, contend, elected, spec, fake } = await start();
  const first = contend('first');
  await passUntil(clock, first.held);
  const second = contend('second');
  const renewals = () => fake.requests.filter((request) => request.startsWith('PUT')).length;
  await passUntil(clock, () => renewals() >= 5);
  expect([first.held(), second.held(), elected]).toEqual([true, false, ['first']]);
  expect(spec()).toMatchObject({ holderIdentity: 'first', leaseDurationSeconds: 12, leaseTransitions: 1 });
  expect(spec()?.['renewTime']).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
});

it('a leader that leaves lets another in without waiting for the Lease to run out', async () => {
  const { clock, contend, spec } = await start();
  const first = contend('first');
  await passUntil(clock, first.held);
  const second = contend('second');
  await first.close();
  expect(first.held()).toBe(false);
  expect(spec()).toMatchObject({ holderIdentity: '' });
  const leftAtMs = clock.now().monotonicMs;
  await passUntil(clock, second.held);
  expect(clock.now().monotonicMs - leftAtMs).toBeLessThan(12_000);
});

it('a leader that is gone is replaced once its Lease has stood still for its duration', async () => {
  const { clock, contend, fake } = await start();
  fake.put(LEASE.replace('/injector', ''), {
    metadata: { name: 'injector' },
    // Its clock is years ahead of ours, which says nothing.
    spec: { holderIdentity: 'gone', leaseDurationSeconds: 60, renewTime: '2099-01-01T00:00:00.000000Z' },
  });
  const startedAtMs = clock.now().monotonicMs;
  const second = contend('second');
  await passUntil(clock, second.held);
  expect(clock.now().monotonicMs - startedAtMs).toBeGreaterThanOrEqual(60_000);
});

it('a leader that is gone without a word is replaced within 15 s, which the log says beforehand', async () => {
  const { clock, contend, fake, lines, spec } = await start();
  await passUntil(clock, contend('second').held);
  // As if another had written it at this moment, and ended.
  fake.put(LEASE.replace('/injector', ''), {
    metadata: { name: 'injector' },
    spec: { ...spec(), holderIdentity: 'gone' },
  });
  const goneAtMs = clock.now().monotonicMs;
  await passUntil(clock, () => spec()?.['holderIdentity'] === 'second', 500);
  expect(clock.now().monotonicMs - goneAtMs).toBeLessThanOrEqual(15_000);
  expect(lines.filter((line) => line.includes('does not renew its Lease'))).toHaveLength(1);
});

it('a leader that cannot renew stops being it before another may take over, and comes back', async () => {
  const { clock, contend, fake, elected } = await start();
  const first = contend('first');
  await passUntil(clock, first.held);
  for (let failure = 0; failure < 4; failure++)
    fake.failNext(/leases/, failure % 2 === 0 ? 'disconnect' : { status: 500 });
  await passUntil(clock, () => !first.held());
  await passUntil(clock, first.held);
  expect(elected).toEqual(['first', 'first']);
});

it('of two that write at once, the slower one loses (409)', async () => {
  const { clock, contend, fake, spec } = await start();
  fake.failNext(/^POST .*leases/, { status: 409 });
  const first = contend('first');
  await fake.until(() => fake.requests.some((request) => request.startsWith('POST')));
  expect(first.held()).toBe(false);
  await passUntil(clock, first.held);
  expect(spec()).toMatchObject({ holderIdentity: 'first' });
});
