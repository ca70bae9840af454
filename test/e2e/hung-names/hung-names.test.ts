/**
 * Upstreams, providers and collectors whose names no server answers for, beside others whose names are answered at once. The name
 * server and the sidecar have a network and files of the system's own. As root.
 */

import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import type { Hanging, Outcome } from './surroundings.ts';

const run = promisify(execFile);

/** The resolver's defaults: two questions of five seconds each. */
const RESOLV_CONF = 'nameserver 127.0.0.1\n';

const ENTER = `
set -e
ip link set lo up
mount --bind "$2/hosts" /etc/hosts
mount --bind "$2/resolv.conf" /etc/resolv.conf
exec "$0" "$1" "$2" "$3"
`;

/** For a busy machine: what waits for a name that hangs waits for five seconds, and is not answered. */
const FLOOR_MS = 1000;

async function take(hanging: Hanging): Promise<Outcome> {
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-hung-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  await writeFile(join(directory, 'hosts'), '127.0.0.1 localhost\n');
  await writeFile(join(directory, 'resolv.conf'), RESOLV_CONF);
  const world = [join(import.meta.dirname, 'world.ts'), directory, JSON.stringify(hanging)];
  const inside = ['--net', '--mount', 'bash', '-c', ENTER, process.execPath, ...world];
  const { stdout } = await run('unshare', inside, { timeout: 100_000 });
  return JSON.parse(stdout) as Outcome;
}

it.each<[string, Hanging]>([
  ['1 upstream', { upstreams: 1, flood: false, own: false }],
  ['2 upstreams', { upstreams: 2, flood: false, own: false }],
  ['4 upstreams', { upstreams: 4, flood: false, own: false }],
  ['8 upstreams', { upstreams: 8, flood: false, own: false }],
  ['ever other upstreams, which an app names', { upstreams: 0, flood: true, own: false }],
  ['another provider and the collector', { upstreams: 0, flood: false, own: true }],
  ['all of these', { upstreams: 4, flood: true, own: true }],
  ['all of these, after all had hung,', { upstreams: 4, flood: true, own: true, outage: true }],
])('the names of %s hang: no request to another is slower, and no grant late', async (_, hanging) => {
  const outcome = await take(hanging);
  const { quietMs, slowestMs, requests, failed, failedGrants, grants } = outcome;
  expect(failed).toEqual({});
  expect(slowestMs).toBeLessThan(Math.max(3 * quietMs, FLOOR_MS));
  expect(requests).toBeGreaterThan(100);
  expect(failedGrants).toEqual([]);
  expect(grants).toBeGreaterThan(3);
  const statuses = new Set([outcome.hung, outcome.flooded].flatMap((answers) => Object.keys(answers)));
  // In an outage there comes to be no token.
  const expected = ['502', '504', ...(hanging.outage ? ['503'] : [])];
  expect([...statuses].filter((status) => !expected.includes(status))).toEqual([]);
  expect(statuses.size > 0).toBe(hanging.upstreams > 0 || hanging.flood);
  expect(outcome.poolThreads).toBe(32);
});
