/** A control group for the pods of a node. */

import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

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

/** With all below it, whose processes have ended. */
export function removeControlGroup(path: string): void {
  if (path === ROOT) return;
  for (const tree of trees()) removeGroup(join(tree, path));
}

function removeGroup(directory: string): void {
  if (!existsSync(directory)) return;
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    if (entry.isDirectory()) removeGroup(join(directory, entry.name));
  }
  rmdirSync(directory);
}
