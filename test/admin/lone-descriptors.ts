/** Prints what the metric of open descriptors says before and after it opens three files, in a process of its own. */

import { openSync } from 'node:fs';
import { registerProcessMetrics } from '../../src/admin/process-metrics.ts';
import { Registry } from '../../src/platform/prometheus.ts';

const registry = new Registry();
registerProcessMetrics(registry);

async function gauge(name: string): Promise<number> {
  return Number(new RegExp(`^${name} (.*)$`, 'm').exec(await registry.metrics())?.[1]);
}

const before = await gauge('process_open_fds');
for (let file = 0; file < 3; file++) openSync('/dev/null', 'r');
const after = await gauge('process_open_fds');
process.stdout.write(JSON.stringify({ before, after, most: await gauge('process_max_fds') }));
