/** When a replica may take the Lease, and how often it looks. */

import { expect, it, onTestFinished } from 'vitest';
import { contendForLeadership } from '../../src/platform/kubernetes/leadership.ts';
import { captureLog } from '../support/log-capture.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { type Asked, scriptedKubernetes } from './scripted-kubernetes.ts';

const LEASES = '/apis/coordination.k8s.io/v1/namespaces/system/leases';

function contend(
  lease: { spec?: object; metadata: object } | number,
  random = 0.5,
  onWrite?: (asked: Asked) => unknown,
) {
  let current: unknown = lease;
  const clock = new ManualClock();
  const { log, lines } = captureLog();
  const { api, asked } = scriptedKubernetes((request) => {
    if (request.method === 'GET') return current;
    const refused = onWrite?.(request);
    if (refused !== undefined) return refused;
    current = { ...request.body, metadata: { resourceVersion: String(asked.length) } };
    return current;
  });
  const options = { namespace: 'system', name: 'injector', identity: 'me', clock, random: () => random, log };
  let elected = 0;
  const leadership = contendForLeadership(api, options, () => void elected++);
  onTestFinished(() => leadership.close());
  return {
    ...leadership,
    clock,
    lines,
    asked,
    elected: () => elected,
    writes: () => asked.filter(({ method }) => method !== 'GET'),
    replace: (next: unknown) => {
      current = next;
    },
  };
}

const heldBy = (holderIdentity: string, more = {}) => ({
  metadata: { name: 'injector', resourceVersion: '1' },
  spec: { holderIdentity, leaseDurationSeconds: 60, ...more },
});

it('makes the Lease when there is none', async () => {
  const { clock, held, writes, elected } = contend(404);
  await clock.advance(0);
  expect([held(), elected()]).toEqual([true, 1]);
  expect(writes()).toEqual([
    {
      method: 'POST',
      path: LEASES,
      query: undefined,
      body: {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { name: 'injector', namespace: 'system' },
        spec: {
          holderIdentity: 'me',
          leaseDurationSeconds: 12,
          acquireTime: '2030-01-01T00:00:00.000000Z',
          renewTime: '2030-01-01T00:00:00.000000Z',
          leaseTransitions: 1,
        },
      },
    },
  ]);
});

it.each([
  ['nobody holds', heldBy('')],
  ['says nothing', { metadata: { name: 'injector' } }],
  ['names no holder', { metadata: { name: 'injector' }, spec: {} }],
])('takes one at once that %s', async (_, lease) => {
  const { clock, held } = contend(lease);
  await clock.advance(0);
  expect(held()).toBe(true);
});

it('keeps its own Lease without a new acquireTime or transition', async () => {
  const own = heldBy('me', { acquireTime: 'then', leaseTransitions: 7 });
  const { clock, writes } = contend(own);
  await clock.advance(0);
  expect(writes()[0]?.body).toMatchObject({
    metadata: own.metadata,
    spec: { acquireTime: 'then', leaseTransitions: 7, renewTime: '2030-01-01T00:00:00.000000Z' },
  });
});

it('takes over a Lease that was not renewed for its duration, and counts the transition', async () => {
  const { clock, held, writes } = contend(
    heldBy('other', { leaseDurationSeconds: 20, acquireTime: 'then', leaseTransitions: 7 }),
  );
  await clock.advance(19_000);
  expect(held()).toBe(false);
  await clock.advance(15_000);
  expect(held()).toBe(true);
  expect(writes()[0]?.body).toMatchObject({
    spec: { leaseTransitions: 8, acquireTime: expect.stringMatching(/^2030/) },
  });
});

it('takes 12 s where the Lease says no duration, from when it was last seen to change', async () => {
  const silent = heldBy('other', { leaseDurationSeconds: undefined });
  const { clock, held, replace } = contend(silent);
  await clock.advance(9_000);
  replace({ ...silent, metadata: { resourceVersion: '2' } });
  // It is seen at the next look.
  await clock.advance(1_000 + 11_999);
  expect(held()).toBe(false);
  await clock.advance(2_500);
  expect(held()).toBe(true);
});

it('says once that it will take another’s, when that has stood still for three quarters of its duration', async () => {
  const { clock, lines } = contend(heldBy('other', { leaseDurationSeconds: 20 }));
  const said = () => lines.filter((line) => line.includes('does not renew its Lease'));
  await clock.advance(14_999);
  expect(said()).toEqual([]);
  await clock.advance(4_000);
  expect(said().map((line) => JSON.parse(line))).toMatchObject([{ leader: 'other', seconds: 5 }]);
});

it.each([
  [0, 2_250],
  [1, 2_750],
])('looks again after 2.5 s, more or less (%s)', async (random, ms) => {
  const { clock, asked } = contend(heldBy('other'), random);
  await clock.advance(ms - 1);
  expect(asked).toHaveLength(1);
  await clock.advance(1);
  expect(asked).toHaveLength(2);
});

it('is the leader for 9 s after its last renewal, and elected again when it comes back', async () => {
  let broken = false;
  const { clock, held, lines, elected } = contend(404, 0.5, () => (broken ? 500 : undefined));
  await clock.advance(0);
  broken = true;
  await clock.advance(8_999);
  expect(held()).toBe(true);
  await clock.advance(1);
  expect(held()).toBe(false);
  expect(lines.join()).toContain('could not be renewed');
  broken = false;
  await clock.advance(15_000);
  expect([held(), elected()]).toEqual([true, 2]);
});

it('is elected again when a renewal ends that began as the leader and outlived that', async () => {
  const renewed = Promise.withResolvers<object>();
  let hangs = false;
  const { clock, held, elected } = contend(404, 0.5, () => (hangs ? renewed.promise : undefined));
  await clock.advance(0);
  hangs = true;
  await clock.advance(10_000);
  expect([held(), elected()]).toEqual([false, 1]);
  renewed.resolve({});
  await clock.advance(0);
  expect([held(), elected()]).toEqual([true, 2]);
});

it('does not log that another replica was faster', async () => {
  const { clock, held, lines } = contend(heldBy(''), 0.5, () => 409);
  await clock.advance(0);
  expect(held()).toBe(false);
  expect(lines).toEqual([]);
});

it('releases the Lease at its end', async () => {
  const { clock, close, writes, held } = contend(404);
  await clock.advance(0);
  await close();
  expect(held()).toBe(false);
  expect(writes().at(-1)).toMatchObject({
    method: 'PUT',
    path: `${LEASES}/injector`,
    body: { spec: { holderIdentity: '', leaseDurationSeconds: 1 } },
  });
});

it.each([
  ['that another has taken meanwhile', heldBy('other'), false],
  ['that cannot be read', 500, true],
])('leaves one alone %s', async (_, lease, isSaid) => {
  const { clock, close, writes, replace, lines } = contend(404);
  await clock.advance(0);
  replace(lease);
  await close();
  expect(writes()).toHaveLength(1);
  expect(lines.join().includes('was not given up')).toBe(isSaid);
});

it('does not release a Lease that it does not hold', async () => {
  const { clock, close, asked } = contend(heldBy('other'));
  await clock.advance(0);
  await close();
  expect(asked).toHaveLength(1);
});
