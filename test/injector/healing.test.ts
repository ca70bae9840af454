import { describe, expect, it } from 'vitest';
import { createHealing } from '../../src/injector/watched-pods/healing.ts';
import type { WatchedPod } from '../../src/injector/watched-pods/watched-pod.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

function pod(name: string, owner: string, kind = 'ReplicaSet', apiVersion = 'apps/v1'): WatchedPod {
  const ownerReferences = [{ apiVersion, kind, name: owner, uid: owner, controller: true }];
  return { metadata: { name, namespace: 'shop', uid: name, ownerReferences } };
}

const [a, b, c] = [pod('a', 'one'), pod('b', 'one'), pod('c', 'two')];

describe('pods are evicted one at a time', () => {
  it('the next only once the last one was replaced by a pod that has the sidecar', () => {
    const healing = createHealing();
    expect(healing.next([a, b, c], 0)).toBe(a);
    healing.evicted(a, 0);
    expect(healing.next([b, c], MINUTE_MS)).toBeUndefined();
    // A pod of somebody else says nothing.
    healing.appeared('two', true, MINUTE_MS);
    expect(healing.next([b, c], MINUTE_MS)).toBeUndefined();
    healing.appeared('one', true, MINUTE_MS);
    expect(healing.next([b, c], MINUTE_MS + 4999)).toBeUndefined();
    expect(healing.next([b, c], MINUTE_MS + 5000)).toBe(b);
  });

  it('a replacement without the sidecar ends it: for the owner for hours, for others for a minute', () => {
    const healing = createHealing();
    healing.evicted(a, 0);
    healing.appeared('one', false, 0);
    expect(healing.next([b, c], MINUTE_MS - 1)).toBeUndefined();
    expect(healing.next([b, c], MINUTE_MS)).toBe(c);
    expect(healing.next([b], HOUR_MS - 1)).toBeUndefined();
    expect(healing.next([b], HOUR_MS)).toBe(b);
    healing.evicted(b, HOUR_MS);
    healing.appeared('one', false, HOUR_MS);
    expect(healing.next([a], 3 * HOUR_MS - 1)).toBeUndefined();
    expect(healing.next([a], 3 * HOUR_MS)).toBe(a);
  });

  it('so does one that never comes', () => {
    const healing = createHealing();
    healing.evicted(a, 0);
    expect(healing.next([b], 5 * MINUTE_MS - 1)).toBeUndefined();
    expect(healing.next([b, c], 5 * MINUTE_MS)).toBeUndefined();
    expect(healing.next([b, c], 6 * MINUTE_MS)).toBe(c);
  });

  it('no owner is left alone for longer than a day', () => {
    const healing = createHealing();
    let nowMs = 0;
    for (let failures = 0; failures < 10; failures++) {
      healing.evicted(a, nowMs);
      healing.appeared('one', false, nowMs);
      nowMs += 24 * HOUR_MS;
      expect(healing.next([a], nowMs)).toBe(a);
    }
    expect(healing.next([a], nowMs - 1)).toBeUndefined();
  });

  it('a PodDisruptionBudget is waited for, and other owners are not', () => {
    const healing = createHealing();
    healing.evicted(a, 0);
    healing.postponed(a, 30_000, 0);
    expect(healing.next([a, c], 5000)).toBe(c);
    expect(healing.next([a], 29_999)).toBeUndefined();
    expect(healing.next([a], 30_000)).toBe(a);
  });
});

it.each([
  ['apps/v1', 'ReplicaSet', true],
  ['apps/v1', 'StatefulSet', true],
  ['apps/v1', 'DaemonSet', true],
  ['v1', 'ReplicationController', true],
  ['batch/v1', 'Job', false],
  ['example.com/v1', 'ReplicaSet', false],
])('the pod of a %s %s is evicted: %s', (apiVersion, kind, isEvicted) => {
  const candidate = pod('a', 'one', kind, apiVersion);
  expect(createHealing().next([candidate], 0)).toBe(isEvicted ? candidate : undefined);
});

it('a pod that nobody would make anew is left', () => {
  expect(createHealing().next([{ metadata: { name: 'a', namespace: 'shop', uid: 'a' } }], 0)).toBeUndefined();
});
