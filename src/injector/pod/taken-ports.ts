/** Ports of a pod's containers that the sidecar needs for itself. */

import type { Problem } from '../../platform/problems.ts';
import { containersOf, itemsOf, type PodSpec } from './pod.ts';

/** @param expectedAt what a container should have instead of a port; undefined if it may keep it. */
export function takenPorts(
  spec: PodSpec,
  expectedAt: (port: number) => string | undefined,
): readonly Problem[] {
  return containersOf(spec).flatMap(({ path, container: { ports } }) =>
    itemsOf(ports).flatMap(({ containerPort }, index) => {
      const expected = expectedAt(containerPort);
      if (expected === undefined) return [];
      return [{ key: `${path}.ports[${index}].containerPort`, value: String(containerPort), expected }];
    }),
  );
}

/** @param what describes the port's use, for the message. */
export function takenPort(spec: PodSpec, port: number, what: string): readonly Problem[] {
  return takenPorts(spec, (one) => (one === port ? `a port other than ${port}, ${what}` : undefined));
}
