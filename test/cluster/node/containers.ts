/** The containers of a node, as its containerd has them. */

import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import type { Node } from './nodes.ts';
import { run } from './run.ts';

/** containerd's own client, in the namespace that the kubelet uses. */
export function ctr({ containerdSocket }: Node, ...args: readonly string[]): Promise<string> {
  return run('ctr', ['--address', containerdSocket, '--namespace', 'k8s.io', ...args]);
}

/** Pods have network namespaces of their own, which nobody takes down once the kubelet is gone. */
export async function removeContainers(node: Node): Promise<void> {
  const ids = (list: string): string[] => list.split('\n').filter((id) => id !== '');
  const containers = ids(await ctr(node, 'containers', 'ls', '-q').catch(() => ''));
  const namespaces = new Set<string>();
  for (const id of containers) {
    const description = await ctr(node, 'containers', 'info', id).catch(() => '');
    const [, namespace] = /"path": "(\/var\/run\/netns\/cni-[^"]+)"/.exec(description) ?? [];
    if (namespace !== undefined) namespaces.add(namespace);
  }
  for (const id of ids(await ctr(node, 'tasks', 'ls', '-q').catch(() => ''))) {
    await ctr(node, 'tasks', 'kill', '--signal', 'SIGKILL', id).catch(() => undefined);
  }
  for (const id of containers) {
    await ctr(node, 'tasks', 'rm', '--force', id).catch(() => undefined);
    await ctr(node, 'containers', 'rm', id).catch(() => undefined);
  }
  for (const namespace of namespaces) {
    unmountBelow(namespace);
    rmSync(namespace, { force: true });
  }
}

/** Takes away what is mounted on places that begin so. */
export function unmountBelow(path: string): void {
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
