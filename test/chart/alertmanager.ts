/** A real Alertmanager with the configuration that is shipped. */

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { parse, stringify } from 'yaml';
import { type RunningProgram, start } from './child-process.ts';
import { pathOf, ROOT } from './tools.ts';

/** Runs until the test ends. */
export function program(command: string, args: readonly string[]): RunningProgram {
  const running = start(command, args);
  onTestFinished(() => running.stop());
  return running;
}

/**
 * With the routes and the inhibition that are shipped, impatient. Resolves with its address.
 * @param pager where every receiver is told; nobody is unless given.
 */
export async function startAlertmanager(directory: string, pager?: string): Promise<string> {
  const shipped = parse(await readFile(`${ROOT}deploy/monitoring/alertmanager.yaml`, 'utf8'));
  const config = join(directory, 'alertmanager.yaml');
  await writeFile(
    config,
    stringify({
      ...shipped,
      route: { ...shipped.route, group_wait: '2s', group_interval: '2s' },
      receivers: shipped.receivers.map(({ name }: { name: string }) => ({
        name,
        ...(pager === undefined ? {} : { webhook_configs: [{ url: pager, send_resolved: true }] }),
      })),
    }),
  );
  const { output } = program(pathOf('alertmanager'), [
    `--config.file=${config}`,
    `--storage.path=${join(directory, 'alertmanager')}`,
    '--web.listen-address=127.0.0.1:0',
    '--cluster.listen-address=',
  ]);
  const [, address] = await output(/(?:address=|msg="Listening on".*address=)(127\.0\.0\.1:\d+)/);
  return address ?? '';
}
