/** One real node of Kubernetes on this machine: brought up from nothing, and taken down without a trace. */

import { execFileSync } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { makeCertificates } from './certificates.ts';
import { startControlPlane } from './control-plane.ts';
import { daemons, deadDaemons, logOf, stopDaemon } from './daemon.ts';
import { startDns } from './dns.ts';
import { makeImageArchives } from './images.ts';
import { get, kubectl } from './kubectl.ts';
import { makeNetwork, removeNetwork } from './network.ts';
import { FIRST_NODE, NODES, type Node, onNode } from './nodes.ts';
import { makeDirectories, STATE } from './places.ts';
import { eventually } from './run.ts';
import { CNI_BIN, COREDNS_BIN, HELM_BIN, KUBERNETES_BIN } from './versions.ts';
import { programsOf, startWorker, stopWorker } from './worker.ts';

/** Programs found on PATH, besides the compiled ones. */
const PROGRAMS = [
  'etcd',
  'containerd',
  'ctr',
  'runc',
  'ip',
  'nsenter',
  'iptables',
  'openssl',
  'buildah',
  'podman',
];

/** In the order in which they are ended. */
const CONTROL_PLANE: readonly string[] = ['coredns', 'scheduler', 'controller-manager', 'apiserver', 'etcd'];

/** Why no cluster can be made on this machine; undefined where it can. */
export function whyUnavailable(): string | undefined {
  if (process.platform !== 'linux') return 'a node of Kubernetes needs Linux';
  if (process.getuid?.() !== 0) return 'network namespaces and containers need root here';
  for (const program of PROGRAMS) {
    try {
      execFileSync('sh', ['-c', `command -v ${program}`], { stdio: 'ignore' });
    } catch {
      return `${program} is not installed`;
    }
  }
  const compiled = [join(KUBERNETES_BIN, 'kubelet'), join(COREDNS_BIN, 'coredns'), join(HELM_BIN, 'helm')];
  for (const file of [...compiled, join(CNI_BIN, 'bridge')]) {
    if (!existsSync(file)) return `${file} is missing: run scripts/install-cluster.ts`;
  }
  return undefined;
}

/** Leaves nothing behind when it fails. */
export async function startCluster(): Promise<void> {
  await stopCluster();
  makeDirectories();
  try {
    await makeImageArchives();
    await makeNetwork(FIRST_NODE);
    await makeCertificates();
    await startControlPlane();
    await startWorker(FIRST_NODE);
    await startDns();
    await becomesReady(FIRST_NODE);
    await eventually('service accounts are made', 30, () => kubectl('get', 'serviceaccount', 'default'));
  } catch (error) {
    const reason = whatWasSaid(FIRST_NODE);
    await stopCluster();
    throw new Error(`the cluster did not come up: ${String(error)}\n${reason}`, { cause: error });
  }
}

async function becomesReady({ name }: Node): Promise<void> {
  await eventually(`${name} is ready`, 120, async () => {
    const dead = deadDaemons();
    if (dead.length > 0)
      throw new Error(dead.map((daemon) => `${daemon} has ended: ${logOf(daemon)}`).join('\n'));
    const { status } = await get<NodeObject>('node', name);
    return status.conditions.some(({ type, status: is }) => type === 'Ready' && is === 'True');
  });
}

interface NodeObject {
  readonly status: { readonly conditions: readonly { readonly type: string; readonly status: string }[] };
}

/** Joins another node to the cluster. Whoever asks for it takes it away again. */
export async function addNode(node: Node): Promise<void> {
  try {
    await makeNetwork(node);
    await startWorker(node);
    await becomesReady(node);
  } catch (error) {
    throw new Error(`${node.name} did not join: ${String(error)}\n${whatWasSaid(node)}`, { cause: error });
  }
}

/** Its pods go first, as budgets allow; then it is as if it had never been there, even if it never came up. */
export async function removeNode(node: Node): Promise<void> {
  const { name } = node;
  if ((await kubectl('get', 'node', name, '--ignore-not-found')) !== '') {
    await kubectl('drain', name, '--ignore-daemonsets', '--delete-emptydir-data', '--timeout=120s');
    await kubectl('delete', 'node', name);
  }
  await stopWorker(node);
  await removeNetwork(node);
  // Those of DaemonSets, which nobody would end before long.
  const onIt = ['--all-namespaces', '--field-selector', `spec.nodeName=${name}`];
  await kubectl('delete', 'pods', ...onIt, '--force', '--grace-period=0');
}

/** Ends everything that `startCluster` and `addNode` began, in this process or in one that died. */
export async function stopCluster(): Promise<void> {
  // First those that a scenario started beside the nodes' own, and that its end did not reach.
  const own = [...CONTROL_PLANE, ...NODES.flatMap(programsOf)];
  for (const name of daemons()) if (!own.includes(name)) await stopDaemon(name);
  for (const node of NODES.toReversed()) await stopWorker(node);
  for (const name of CONTROL_PLANE) await stopDaemon(name);
  for (const node of NODES.toReversed()) await removeNetwork(node);
  rmSync(STATE, { recursive: true, force: true });
}

/** By those of its programs that have ended; by the kubelet where all run. */
function whatWasSaid(node: Node): string {
  const dead = deadDaemons();
  return (dead.length > 0 ? dead : [onNode(node, 'kubelet')])
    .map((name) => `${name}: ${tryLog(name)}`)
    .join('\n');
}

function tryLog(name: string): string {
  try {
    return logOf(name);
  } catch {
    return 'no log';
  }
}
