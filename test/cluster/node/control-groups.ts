/** A control group for the pods of a node. */

import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from './run.ts';

const ALL = '/sys/fs/cgroup';

/** Is there before any node. */
const ROOT = '/';

/** Version 1 has a tree for each controller, version 2 one for all. */
export const ON_VERSION_1 = !existsSync(join(ALL, 'cgroup.controllers'));

const trees = (): readonly string[] =>
  ON_VERSION_1
    ? readdirSync(ALL, { withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .map(({ name }) => join(ALL, name))
    : [ALL];

/** @param path of the group, such as `/node1`; the kubelet makes those below it. */
export function makeControlGroup(path: string): void {
  if (path === ROOT) return;
  for (const tree of trees()) mkdirSync(join(tree, path), { recursive: true });
  if (ON_VERSION_1) return;
  const controllers = readFileSync(join(ALL, 'cgroup.controllers'), 'utf8').trim().split(/\s+/);
  writeFileSync(join(ALL, 'cgroup.subtree_control'), controllers.map((name) => `+${name}`).join(' '));
}

/** With all below it. What still runs in it is killed. */
export async function removeControlGroup(path: string): Promise<void> {
  if (path === ROOT) return;
  await eventually(`the control group ${path} is gone`, 10, async () => {
    for (const tree of trees()) removeGroup(join(tree, path));
    return true;
  });
}

function removeGroup(directory: string): void {
  if (!existsSync(directory)) return;
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    if (entry.isDirectory()) removeGroup(join(directory, entry.name));
  }
  for (const pid of readFileSync(join(directory, 'cgroup.procs'), 'utf8').split('\n').map(Number)) {
    if (pid > 0) process.kill(pid, 'SIGKILL');
  }
  // Refused until they have ended.
  rmdirSync(directory);
}
