/** Programs of the machine, run where a pod's containers are: on its loopback. */

import { ctr } from './containers.ts';
import { FIRST_NODE } from './nodes.ts';

/** @param containerId of a pod on the first node, as in a pod's status, `containerd://…`. */
export async function inPodNetwork(containerId: string): Promise<readonly [string, ...string[]]> {
  const id = containerId.replace('containerd://', '');
  const task = (await ctr(FIRST_NODE, 'tasks', 'ls')).split('\n').find((line) => line.startsWith(id));
  const pid = task?.split(/\s+/)[1];
  if (pid === undefined) throw new Error(`containerd runs no container ${id}`);
  return ['nsenter', '--net', `--target=${pid}`, '--'];
}
