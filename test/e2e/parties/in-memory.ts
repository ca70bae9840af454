/** A control group of a memory limit, for a process that runs as the image runs it. */

import { onTestFinished } from 'vitest';
import { makeControlGroup, ON_VERSION_1, removeControlGroup } from '../../cluster/node/control-groups.ts';

/**
 * A command before Node and its arguments: they end up in a group of their own, within its memory, with the shipped flags. The
 * group goes with the test.
 */
export function withinMemory(bytes: number, flags: readonly string[]): readonly string[] {
  const group = `/token-sidecar-parties-${process.pid}`;
  makeControlGroup(group);
  onTestFinished(() => removeControlGroup(group));
  const [directory, limit] = ON_VERSION_1
    ? [`/sys/fs/cgroup/memory${group}`, 'memory.limit_in_bytes']
    : [`/sys/fs/cgroup${group}`, 'memory.max'];
  const script = [
    `echo ${bytes} > ${directory}/${limit}`,
    `echo $$ > ${directory}/cgroup.procs`,
    // As container runtimes do.
    'ulimit -n $(ulimit -H -n)',
    `node=$1; shift; exec "$node" ${flags.join(' ')} "$@"`,
  ].join(' && ');
  return ['sh', '-c', script, 'sh'];
}
