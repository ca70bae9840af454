import { afterAll, beforeAll, describe, inject } from 'vitest';
import { apply, kubectl } from '../node/kubectl.ts';
import { clientSecret, deleteNamespace, namespace, provideRelease } from './release.ts';
import { protectedApi } from './workload.ts';

/** Tests that want a cluster. */
export const inCluster = describe.skipIf(inject('clusterUnavailable') !== undefined);

/** Gives the tests of a file a release, and a namespace of their own with a Secret and the protected API in it. */
export function useShop(name: string): void {
  beforeAll(async () => {
    await provideRelease();
    await apply(namespace(name), clientSecret(name, 'first'), ...protectedApi(name));
    await kubectl('-n', name, 'rollout', 'status', 'deployment/api', '--timeout=120s');
  });
  afterAll(() => deleteNamespace(name));
}
