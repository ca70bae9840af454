/** One real node of Kubernetes on this machine: brought up from nothing, and taken down without a trace. */

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { makeCertificates } from './certificates.ts';
import { startControlPlane } from './control-plane.ts';
import { daemons, deadDaemons, logOf, stopDaemon } from './daemon.ts';
import { startDns } from './dns.ts';
import { makeImageArchives } from './images.ts';
import { get, kubectl } from './kubectl.ts';
import { makeNetwork, removeNetwork } from './network.ts';
import { makeDirectories, NODE_NAME, STATE } from './places.ts';
import { eventually } from './run.ts';
import { CNI_BIN, COREDNS_BIN, HELM_BIN, KUBERNETES_BIN } from './versions.ts';
import { ctr, startWorker } from './worker.ts';

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

/** Of the node, in the order in which they are ended. */
const OWN_PROGRAMS: readonly string[] = [
  'kubelet',
  'coredns',
  'proxy',
  'scheduler',
  'controller-manager',
  'containerd',
  'apiserver',
  'etcd',
];

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
  const archives = await makeImageArchives();
  try {
    await makeNetwork();
    await makeCertificates();
    await startControlPlane();
    await startWorker(archives);
    await startDns();
    await eventually('the node is ready', 120, async () => {
      const dead = deadDaemons();
      if (dead.length > 0)
        throw new Error(dead.map((name) => `${name} has ended: ${logOf(name)}`).join('\n'));
      const node = await get<Node>('node', NODE_NAME);
      return node.status.conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
    });
    await eventually('service accounts are made', 30, () => kubectl('get', 'serviceaccount', 'default'));
  } catch (error) {
    const dead = deadDaemons();
    const logs = (dead.length > 0 ? dead : ['kubelet']).map((name) => `${name}: ${tryLog(name)}`).join('\n');
    await stopCluster();
    throw new Error(`the cluster did not come up: ${String(error)}\n${logs}`, { cause: error });
  }
}

interface Node {
  readonly status: { readonly conditions: readonly { readonly type: string; readonly status: string }[] };
}

/** Ends everything that `startCluster` began, in this process or in one that died. */
export async function stopCluster(): Promise<void> {
  // First those that a scenario started beside the node's own, and that its end did not reach.
  for (const name of daemons()) if (!OWN_PROGRAMS.includes(name)) await stopDaemon(name);
  await stopDaemon('kubelet');
  if (daemons().includes('containerd')) await removeContainers();
  for (const name of OWN_PROGRAMS) await stopDaemon(name);
  unmountBelow(`${STATE}/`);
  await removeNetwork();
  rmSync(STATE, { recursive: true, force: true });
}

/** Pods have network namespaces of their own, which nobody takes down once the kubelet is gone. */
async function removeContainers(): Promise<void> {
  const ids = (list: string): string[] => list.split('\n').filter((id) => id !== '');
  const containers = ids(await ctr('containers', 'ls', '-q').catch(() => ''));
  const namespaces = new Set<string>();
  for (const id of containers) {
    const description = await ctr('containers', 'info', id).catch(() => '');
    const [, namespace] = /"path": "(\/var\/run\/netns\/cni-[^"]+)"/.exec(description) ?? [];
    if (namespace !== undefined) namespaces.add(namespace);
  }
  for (const id of ids(await ctr('tasks', 'ls', '-q').catch(() => ''))) {
    await ctr('tasks', 'kill', '--signal', 'SIGKILL', id).catch(() => undefined);
  }
  for (const id of containers) {
    await ctr('tasks', 'rm', '--force', id).catch(() => undefined);
    await ctr('containers', 'rm', id).catch(() => undefined);
  }
  for (const namespace of namespaces) {
    unmountBelow(namespace);
    rmSync(namespace, { force: true });
  }
}

function unmountBelow(path: string): void {
  const mounts = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '')
    .filter((mount) => mount.startsWith(path.replace(/^\/var\/run\//, '/run/')) || mount.startsWith(path));
  for (const mount of mounts.reverse()) {
    try {
      execFileSync('umount', ['--lazy', mount], { stdio: 'ignore' });
    } catch {
      // Another mount on the same place may have taken it along.
    }
  }
}

function tryLog(name: string): string {
  try {
    return logOf(name);
  } catch {
    return 'no log';
  }
}
