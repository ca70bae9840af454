/** Pods that asked for the sidecar while no injector was there, and nothing enforced it. */

import { apply, kubectl } from '../node/kubectl.ts';
import { eventually } from '../node/run.ts';
import { NAMESPACE, RELEASE } from './release.ts';
import { askingForSidecar, callingTemplate, hasSidecar, podsOf } from './workload.ts';

/** Their Deployment. */
export const MISSED = 'missed';
export const MISSED_PODS = 3;

/** Takes the injector away, and makes them. */
export async function makeMissedPods(namespace: string): Promise<void> {
  await kubectl('-n', NAMESPACE, 'scale', `deployment/${RELEASE}-injector`, '--replicas=0');
  await eventually('the injector is gone', 60, async () => {
    const pods = await kubectl('-n', NAMESPACE, 'get', 'pods', '-o', 'name');
    return !pods.includes('injector');
  });
  await apply({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: MISSED, namespace },
    spec: {
      replicas: MISSED_PODS,
      selector: { matchLabels: { app: MISSED } },
      template: callingTemplate(MISSED, askingForSidecar(namespace)),
    },
  });
  await eventually('pods without the sidecar', 60, async () => {
    const pods = await podsOf(namespace, MISSED);
    return pods.length === MISSED_PODS && !pods.some(hasSidecar);
  });
}

/** An injector that is there again has said so. */
export async function missedPodsTold(namespace: string): Promise<void> {
  await eventually('an Event on their owner', 120, async () => {
    const events = await kubectl(
      ...(['-n', namespace, 'get', 'events'] as const),
      ...['--field-selector', 'reason=TokenSidecarNotInjected'],
      ...['-o', 'jsonpath={.items[*].involvedObject.kind}'],
    );
    return events.includes('ReplicaSet');
  });
}
