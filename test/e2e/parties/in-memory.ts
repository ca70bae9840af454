/** What a process needs that runs as the image runs it: the built program, in a control group of a memory limit. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, onTestFinished } from 'vitest';
import { bundleProgram } from '../../../scripts/build/program.ts';
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

/** Builds the program before the first test of a file: from its sources it takes some 30 MB more. Its path, once it is built. */
export function builtProgram(): () => string {
  let output = '';
  beforeAll(async () => {
    output = await mkdtemp(join(tmpdir(), 'token-sidecar-built-'));
    await bundleProgram({ root: join(import.meta.dirname, '../../..'), output, revision: 'built for tests' });
  });
  afterAll(() => rm(output, { recursive: true, force: true }));
  return () => join(output, 'token-sidecar.js');
}
