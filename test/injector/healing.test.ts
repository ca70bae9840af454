/** Which pod is evicted next, and after how long. */

import { describe, expect, it } from 'vitest';
import { selects } from '../../src/injector/label-selector.ts';
import { createHealing } from '../../src/injector/watched-pods/healing.ts';
import {
  lacksSidecar,
  reduced,
  tokenFailure,
  type WatchedPod,
} from '../../src/injector/watched-pods/watched-pod.ts';
import { ASKING } from './defaults.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

function pod(owner: string, kind = 'apps/v1 ReplicaSet'): WatchedPod {
  const [apiVersion = '', name = ''] = kind.split(' ');
  return {
    metadata: {
      name: `${owner}-pod`,
      namespace: 'team',
      uid: `pod-${owner}`,
      ownerReferences: [{ apiVersion, kind: name, name: owner, uid: owner, controller: true }],
    },
  };
}
const [a, b] = [pod('a'), pod('b')];

describe('the next pod to evict', () => {
  it.each([
    ['apps/v1 ReplicaSet', true],
    ['apps/v1 StatefulSet', true],
    ['apps/v1 DaemonSet', true],
    ['v1 ReplicationController', true],
    ['batch/v1 Job', false],
    ['example.com/v1 ReplicaSet', false],
  ])('may be one of a %s: %s', (kind, is) => {
    const candidate = pod('a', kind);
    expect(createHealing().next([candidate], 0)).toBe(is ? candidate : undefined);
  });

  it('is the first one that has an owner', () => {
    const alone: WatchedPod = { metadata: { name: 'x', namespace: 'team', uid: 'x' } };
    expect(createHealing().next([alone], 0)).toBeUndefined();
    expect(createHealing().next([alone, b, a], 0)).toBe(b);
  });

  it('waits for the replacement of the previous one, and then for five seconds', () => {
    const healing = createHealing();
    healing.evicted(a, 0);
    expect(healing.next([b], 5000)).toBeUndefined();
    healing.appeared('another', true, 5000);
    expect(healing.next([b], 10_000)).toBeUndefined();
    healing.appeared('a', true, 10_000);
    expect(healing.next([b], 14_999)).toBeUndefined();
    expect(healing.next([a], 15_000)).toBe(a);
  });

  it.each<[string, (healing: ReturnType<typeof createHealing>, nowMs: number) => number]>([
    [
      'that comes without its sidecar too',
      (healing, nowMs) => {
        healing.appeared('a', false, nowMs);
        return nowMs;
      },
    ],
    [
      'that does not come in five minutes',
      (healing, nowMs) => {
        expect(healing.next([b], nowMs + 5 * MINUTE_MS - 1)).toBeUndefined();
        expect(healing.next([b], nowMs + 5 * MINUTE_MS)).toBeUndefined();
        return nowMs + 5 * MINUTE_MS;
      },
    ],
  ])('gives an owner up after one %s, and says so', (_, fails) => {
    const told: WatchedPod[] = [];
    const healing = createHealing((pod) => told.push(pod));
    healing.evicted(a, 0);
    const nowMs = fails(healing, 0);
    expect(told).toEqual([a]);
    expect(healing.next([a], nowMs + 1000 * HOUR_MS)).toBeUndefined();
    expect(healing.next([a, b], nowMs + MINUTE_MS)).toBe(b);
  });

  it('is none in the first five minutes of a leader', () => {
    const healing = createHealing();
    healing.elected(1000);
    expect(healing.next([a], 1000 + 5 * MINUTE_MS - 1)).toBeUndefined();
    expect(healing.next([a], 1000 + 5 * MINUTE_MS)).toBe(a);
  });

  it('is none once a thousand owners have been given up, so that none is forgotten', () => {
    const healing = createHealing();
    for (let count = 0; count < 1000; count++) {
      expect(healing.next([b], count * HOUR_MS)).toBe(b);
      healing.evicted(pod(`o${count}`), count * HOUR_MS);
      healing.appeared(`o${count}`, false, count * HOUR_MS);
    }
    expect(healing.next([b], 2000 * HOUR_MS)).toBeUndefined();
  });

  it('waits a minute, then two and four, up to half an hour, until one is healed', () => {
    const healing = createHealing();
    let nowMs = 0;
    const fail = (owner: string): void => {
      healing.evicted(pod(owner), nowMs);
      healing.appeared(owner, false, nowMs);
    };
    for (const [index, minutes] of [1, 2, 4, 8, 16, 30, 30].entries()) {
      fail(`o${index}`);
      expect(healing.next([b], nowMs + minutes * MINUTE_MS - 1)).toBeUndefined();
      nowMs += minutes * MINUTE_MS;
      expect(healing.next([b], nowMs)).toBe(b);
    }
    healing.evicted(b, nowMs);
    healing.appeared('b', true, nowMs);
    fail('last');
    expect(healing.next([b], nowMs + MINUTE_MS)).toBe(b);
  });

  it('comes again after the requested time if its eviction was postponed', () => {
    const healing = createHealing();
    healing.evicted(a, 0);
    healing.postponed(a, 30_000, 0);
    expect(healing.next([b], 4999)).toBeUndefined();
    expect(healing.next([a, b], 5000)).toBe(b);
    expect(healing.next([a, b], 30_000)).toBe(a);
  });

  it('an owner that is heard of again is the last to be forgotten', () => {
    const healing = createHealing();
    for (let count = 0; count < 1000; count++) healing.postponed(pod(`o${count}`), HOUR_MS, 0);
    for (const owner of ['o0', 'one more']) healing.postponed(pod(owner), HOUR_MS, 0);
    expect(healing.next([pod('o0')], 10_000)).toBeUndefined();
    expect(healing.next([pod('o1')], 10_000)).toMatchObject({ metadata: { name: 'o1-pod' } });
  });

  it('a thousand owners are remembered, of which the oldest is forgotten', () => {
    const healing = createHealing();
    for (let count = 0; count < 1000; count++) healing.postponed(pod(`o${count}`), HOUR_MS, 0);
    expect(healing.next([pod('o0')], 10_000)).toBeUndefined();
    healing.postponed(pod('one more'), HOUR_MS, 0);
    expect(healing.next([pod('o1')], 10_000)).toBeUndefined();
    expect(healing.next([pod('o0')], 10_000)).toMatchObject({ metadata: { name: 'o0-pod' } });
  });
});

describe('a selector', () => {
  const expression = (operator: string, values?: string[]) => ({
    matchExpressions: [{ key: 'k', operator, ...(values === undefined ? {} : { values }) }],
  });
  it.each([
    [{}, true, true],
    [{ matchLabels: { k: 'v' } }, true, false],
    [{ matchLabels: { k: 'v', l: 'w' } }, false, false],
    [expression('In', ['u', 'v']), true, false],
    [expression('In', ['u']), false, false],
    [expression('In'), false, false],
    [expression('NotIn', ['v']), false, true],
    [expression('NotIn', ['u']), true, true],
    [expression('Exists'), true, false],
    [expression('DoesNotExist'), false, true],
    [expression('Near'), false, false],
    [{ matchLabels: { k: 'v' }, ...expression('DoesNotExist') }, false, false],
  ])('%j takes a label: %s, and none: %s', (selector, labelled, bare) => {
    expect([selects(selector, { k: 'v' }), selects(selector, {})]).toEqual([labelled, bare]);
  });
});

describe('a pod of the API', () => {
  const seen = (more: object, metadata: object = {}): WatchedPod => ({
    ...more,
    metadata: { ...a.metadata, annotations: ASKING, ...metadata },
  });
  it.each<[string, WatchedPod, boolean]>([
    ['asks and has none', seen({ spec: { containers: [{ name: 'app' }] } }), true],
    ['runs without one', seen({ status: { phase: 'Running' } }), true],
    ['has one', seen({ spec: { initContainers: [{ name: 'token-sidecar' }] } }), false],
    ['does not ask', seen({}, { annotations: undefined }), false],
    ['asks not to', seen({}, { annotations: { 'token-sidecar.dev/inject': 'false' } }), false],
    ['is the kubelet’s', seen({}, { annotations: { ...ASKING, 'kubernetes.io/config.mirror': 'x' } }), false],
    ['is being deleted', seen({}, { deletionTimestamp: 'now' }), false],
    ['has succeeded', seen({ status: { phase: 'Succeeded' } }), false],
    ['has failed', seen({ status: { phase: 'Failed' } }), false],
  ])('that %s lacks its sidecar: %s', (_, subject, lacks) => {
    expect(lacksSidecar(subject)).toBe(lacks);
  });

  it('is kept as little as it takes', () => {
    const large = seen(
      { spec: { containers: [{ name: 'app' }] } },
      { annotations: { ...ASKING, large: 'x'.repeat(250_000) }, labels: { app: 'web' } },
    );
    expect(reduced(large)).toEqual({ metadata: { ...a.metadata, labels: { app: 'web' } } });
    const labelled = seen({}, { labels: { app: 'x'.repeat(3000) } });
    expect(reduced(labelled)).toEqual({ metadata: a.metadata, labelsLeftOut: true });
    const owned = seen(
      {},
      { ownerReferences: [{ ...a.metadata.ownerReferences?.[0], name: 'x'.repeat(2000) }] },
    );
    expect(JSON.stringify(reduced(owned)).length).toBeLessThan(200);
  });

  it('has a reason of at most 512 characters', () => {
    expect(status({ state: ended(77, 'x'.repeat(4096)) })).toHaveLength(512);
  });

  const status = (sidecar: object, list = 'initContainerStatuses', metadata: object = {}) =>
    tokenFailure(
      seen(
        {
          status: {
            [list]: [
              { name: 'app', started: false },
              { name: 'token-sidecar', ...sidecar },
            ],
          },
        },
        metadata,
      ),
    );
  const ended = (exitCode: number, message?: string) => ({
    terminated: { exitCode, ...(message === undefined ? {} : { message }) },
  });

  it.each([
    ['said why', { state: ended(77, 'why') }, 'why'],
    ['said nothing', { state: ended(69) }, 'it ended with 69'],
    ['said why the time before', { state: {}, lastState: ended(78, 'why') }, 'why'],
    ['has started since', { started: true, lastState: ended(77, 'why') }, undefined],
    ['ended for another reason', { state: ended(1, 'why') }, undefined],
    ['ended well after a failure', { state: ended(0), lastState: ended(77) }, undefined],
    ['has not ended', {}, undefined],
  ])('whose sidecar %s', (_, sidecar, failure) => {
    expect(status(sidecar)).toBe(failure);
    expect(status(sidecar, 'containerStatuses')).toBe(failure);
  });

  it('that is being deleted, or has no sidecar, has no failure', () => {
    expect(
      status({ state: ended(77, 'why') }, 'initContainerStatuses', { deletionTimestamp: 'now' }),
    ).toBeUndefined();
    expect(tokenFailure(seen({}))).toBeUndefined();
  });
});
