/** The machines that a cluster can have, all of them stood in for by this one: what each is called, and what is its own. */

import { join } from 'node:path';
import { STATE } from './places.ts';

export interface Node {
  readonly name: string;
  /** Its addresses go by it. */
  readonly index: number;
  /** The network namespace, with everything that runs on the node. */
  readonly networkNamespace: string;
  /** The node through whose network it reaches everything else; the machine itself where there is none. */
  readonly behind?: Node;
  /** The other end of its interface, in that network. */
  readonly gatewayInterface: string;
  /** What its programs keep. It goes with the node. */
  readonly directory: string;
  readonly containerdSocket: string;
  /** The control group that its pods' are below: a kubelet removes those of pods that it doesn't know. */
  readonly controlGroup: string;
}

/** The node that every scenario has. The control plane runs on it, too. */
export const FIRST_NODE = describeNode({
  name: 'node0',
  index: 0,
  networkNamespace: 'token-sidecar-node',
  gatewayInterface: 'tsc-host',
  controlGroup: '/',
});

/** The node that a scenario may add. */
export const SECOND_NODE = describeNode({
  name: 'node1',
  index: 1,
  networkNamespace: 'token-sidecar-node1',
  behind: FIRST_NODE,
  gatewayInterface: 'tsc-node1',
  controlGroup: '/token-sidecar-node1',
});

export const NODES: readonly Node[] = [FIRST_NODE, SECOND_NODE];

/** What a program of one node, or a file of its, is called among those of all nodes. */
export function onNode({ name }: Node, program: string): string {
  return `${name}-${program}`;
}

function describeNode(node: Omit<Node, 'directory' | 'containerdSocket'>): Node {
  const directory = join(STATE, node.name);
  return { ...node, directory, containerdSocket: join(directory, 'containerd.sock') };
}
