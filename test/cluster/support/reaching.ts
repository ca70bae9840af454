/** Whether connections from a pod come about: made where its containers are, in its network. */

import { inPodNetwork } from '../node/pod-network.ts';
import { run } from '../node/run.ts';
import type { Pod } from './workload.ts';

/** Run by Node in the pod's network: what to connect to comes by standard input. */
const PROGRAM = `
import { text } from 'node:stream/consumers';
import { connect } from 'node:net';
const reach = ([host, port]) => new Promise((resolve) => {
  const socket = connect({ host, port });
  const finish = (how) => { socket.destroy(); resolve(how); };
  socket.setTimeout(4_000, () => finish('cut'));
  socket.once('connect', () => finish('connected'));
  socket.once('error', ({ code }) => finish(code));
});
const targets = Object.entries(JSON.parse(await text(process.stdin)));
const reached = targets.map(async ([name, target]) => [name, await reach(target)]);
process.stdout.write(JSON.stringify(Object.fromEntries(await Promise.all(reached))));
`;

/**
 * Connects to each target, an address and a port.
 * @returns under the same names `connected`; `cut` where nothing came back, as when a policy forbids it; otherwise the system's code for what went wrong.
 */
export async function reach(
  from: Pod,
  targets: Readonly<Record<string, readonly [string, number]>>,
): Promise<Readonly<Record<string, string>>> {
  const [enter, ...entered] = await networkOf(from);
  const program = [process.execPath, '--input-type=module', '--eval', PROGRAM];
  const reached = await run(enter, [...entered, ...program], { input: JSON.stringify(targets) });
  return JSON.parse(reached) as Record<string, string>;
}

/** The command that runs another one in the network of a pod. */
export function networkOf({ metadata, status }: Pod): Promise<readonly [string, ...string[]]> {
  const id = [...(status.containerStatuses ?? []), ...(status.initContainerStatuses ?? [])]
    .map(({ containerID }) => containerID)
    .find((each) => each !== undefined);
  if (id === undefined) throw new Error(`no container of ${metadata.name} runs`);
  return inPodNetwork(id);
}
