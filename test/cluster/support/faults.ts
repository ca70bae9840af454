/** What goes wrong in a release while apps call, and whether they notice. */

import { expect } from 'vitest';
import { get, kubectl } from '../node/kubectl.ts';
import { eventually } from '../node/run.ts';
import { NAMESPACE, RELEASE } from './release.ts';
import { callsOn, countsOf, isReady, type Pod } from './workload.ts';

export type Component = 'broker' | 'gateway' | 'injector' | 'issuer';

/** Replicas of a component that are not being ended. */
export async function replicasOf(component: Component): Promise<readonly Pod[]> {
  const { items } = await get<{ items: Pod[] }>(
    ...(['pods', '-n', NAMESPACE, '-l', `app.kubernetes.io/component=${component}`] as const),
  );
  return items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
}

export function readyReplicas(component: Component, count: number): Promise<readonly Pod[]> {
  return eventually(`${count} ready replicas of the ${component}`, 120, async () => {
    const replicas = await replicasOf(component);
    return replicas.length === count && replicas.every(isReady) && replicas;
  });
}

/** As when its node is gone: nobody asks it to drain. */
export async function killReplica({ metadata }: Pod): Promise<void> {
  await kubectl('-n', NAMESPACE, 'delete', 'pod', metadata.name, '--grace-period=0', '--force');
}

export async function restart(component: Component): Promise<void> {
  const deployment = `deployment/${RELEASE}-${component}`;
  await kubectl('-n', NAMESPACE, 'rollout', 'restart', deployment);
  await kubectl('-n', NAMESPACE, 'rollout', 'status', deployment, '--timeout=150s');
}

export async function scale(component: Component, replicas: number): Promise<void> {
  await kubectl('-n', NAMESPACE, 'scale', `deployment/${RELEASE}-${component}`, `--replicas=${replicas}`);
}

/** Every one of these apps goes on calling, and none has had a failure, now or before. */
export async function expectNoFailure(pods: readonly Pod[], more = 10): Promise<void> {
  for (const pod of pods) expect(await callsOn(pod, more), pod.metadata.name).toMatchObject({ failed: 0 });
}

/** What all of them have counted; each failure with its pod, whose sidecar's last lines follow. */
export async function totalOf(pods: readonly Pod[]): Promise<{ calls: number; failures: readonly string[] }> {
  const counts = await Promise.all(pods.map(async (pod) => ({ pod, ...(await countsOf(pod)) })));
  const failing = counts.filter(({ failures }) => failures.length > 0);
  const told = await Promise.all(
    failing.map(async ({ pod, failures }) => [
      ...failures.map((failure) => `${pod.metadata.name}: ${failure}`),
      ...(await lastLines(pod)),
    ]),
  );
  return { calls: counts.reduce((sum, { calls }) => sum + calls, 0), failures: told.flat() };
}

/** One that cannot be read hides no failure. */
async function lastLines({ metadata }: Pod): Promise<readonly string[]> {
  const log = kubectl('-n', metadata.namespace, 'logs', metadata.name, '-c', 'token-sidecar', '--tail=12');
  const text = await log.catch((error: unknown) => `no log: ${String(error)}`);
  return text
    .trimEnd()
    .split('\n')
    .map((line) => `${metadata.name}: ${line}`);
}
