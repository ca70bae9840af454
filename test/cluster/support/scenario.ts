import { afterAll, beforeAll, describe, inject } from 'vitest';
import { apply, kubectl } from '../node/kubectl.ts';
import { MINOR } from '../node/versions.ts';
import { clientSecret, deleteNamespace, namespace, provideRelease } from './release.ts';
import { protectedApi } from './workload.ts';

const isUnavailable = inject('clusterUnavailable') !== undefined;

/** Tests that want a cluster. */
export const inCluster = describe.skipIf(isUnavailable);

/** Tests that want one of which `has` is true. */
export const inClusterWhere = (has: boolean): typeof inCluster => describe.skipIf(isUnavailable || !has);

/** ValidatingAdmissionPolicies are there: pods that lack the sidecar they ask for are refused. */
export const hasPolicies = MINOR >= 30;

/** Gives the tests of a file a release, and a namespace of their own with a Secret and the protected API in it. */
export function useShop(name: string): void {
  beforeAll(async () => {
    await provideRelease();
    await apply(namespace(name), clientSecret(name, 'first'), ...protectedApi(name));
    await kubectl('-n', name, 'rollout', 'status', 'deployment/api', '--timeout=120s');
  });
  afterAll(() => deleteNamespace(name));
}
