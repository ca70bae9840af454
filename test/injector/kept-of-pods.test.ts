import { expect, it } from 'vitest';
import { reduced, type WatchedPod } from '../../src/injector/watched-pods/watched-pod.ts';

/** A pod whose labels, or whose owner, come to so many characters of JSON. */
function podWith({ labels = 0, owner = 0 }): WatchedPod {
  const own = { apiVersion: 'v1', kind: 'Job', name: '', uid: 'u', controller: true };
  const name = 'n'.repeat(Math.max(0, owner - JSON.stringify(own).length));
  const label = 'l'.repeat(Math.max(0, labels - JSON.stringify({ a: '' }).length));
  return {
    metadata: {
      name: 'p',
      namespace: 'team',
      uid: 'x',
      annotations: { large: 'a'.repeat(1000) },
      ...(owner > 0 ? { ownerReferences: [{ ...own, name, blockOwnerDeletion: true }] } : {}),
      ...(labels > 0 ? { labels: { a: label } } : {}),
    },
    status: { phase: 'Running' },
  } as unknown as WatchedPod;
}

it('of a pod its names, its labels and its owner are kept, and nothing else', () => {
  expect(reduced(podWith({ labels: 10, owner: 100 }))).toEqual({
    metadata: {
      name: 'p',
      namespace: 'team',
      uid: 'x',
      labels: { a: expect.any(String) },
      ownerReferences: [expect.objectContaining({ kind: 'Job', controller: true })],
    },
  });
  expect(reduced(podWith({})).metadata).toEqual({ name: 'p', namespace: 'team', uid: 'x', labels: {} });
});

it.each([
  [2048, true],
  [2049, false],
])('labels of %s characters are kept: %s', (labels, kept) => {
  const { metadata, ...rest } = reduced(podWith({ labels }));
  expect('labels' in metadata).toBe(kept);
  expect(rest).toEqual(kept ? {} : { labelsLeftOut: true });
});

it.each([
  [1024, true],
  [1025, false],
])('an owner of %s characters is kept: %s', (owner, kept) => {
  expect('ownerReferences' in reduced(podWith({ owner })).metadata).toBe(kept);
});
