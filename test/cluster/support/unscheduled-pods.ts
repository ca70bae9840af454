/** Pods that no node takes: they are admitted like any other, and cost nothing. */

import { apply, kubectl } from '../node/kubectl.ts';
import { askingForSidecar, callingTemplate, hasSidecar, podsOf } from './workload.ts';

/** In place of a node that could run it. */
export const NO_NODE = { nodeSelector: { 'no/node': 'has-this' } };

export function unscheduledPod(namespace: string, name: string, app: string): object {
  const annotations = askingForSidecar(namespace);
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    ...callingTemplate(app, annotations, {}, NO_NODE),
    metadata: { name, namespace, labels: { app }, annotations },
  };
}

export interface Made {
  readonly pods: number;
  /** Names of those that were admitted without a sidecar. */
  readonly bare: readonly string[];
  /** What was said when a pod was refused; it was asked for again until it was admitted, as controllers do. */
  readonly refusals: readonly string[];
}

/** So many refusals in a row are no gap any more. */
const MAX_REFUSALS = 500;

/** Makes pods one after another until `operation` has ended, and 20 more. Takes them away again. */
export async function makePodsDuring(
  namespace: string,
  app: string,
  operation: () => Promise<unknown>,
): Promise<Made> {
  let isOver = false;
  let left = 20;
  let made = 0;
  const refusals: string[] = [];
  const operated = operation().finally(() => {
    isOver = true;
  });
  // It is awaited below; until then nobody else shall call its failure unhandled.
  operated.catch(() => undefined);
  while (!isOver || left > 0) {
    try {
      await apply(unscheduledPod(namespace, `${app}-${made}`, app));
      made += 1;
      if (isOver) left -= 1;
    } catch (error) {
      refusals.push((error as Error).message);
      if (refusals.length === MAX_REFUSALS) throw error;
    }
  }
  await operated;
  const pods = await podsOf(namespace, app);
  await deletePods(namespace, app);
  return {
    pods: pods.length,
    bare: pods.filter((pod) => !hasSidecar(pod)).map(({ metadata }) => metadata.name),
    refusals,
  };
}

/** All at once, by one call: kubectl makes one for each. */
export async function deletePods(namespace: string, app: string): Promise<void> {
  const query = new URLSearchParams({ labelSelector: `app=${app}`, gracePeriodSeconds: '0' });
  await kubectl('delete', '--raw', `/api/v1/namespaces/${namespace}/pods?${query}`);
}
