/** Names with addresses of both families, asked from a pod in which IPv6 leads nowhere and IPv4 takes long. As root. */

import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { FAR, type Ipv6, NAMES, type Outcome } from './surroundings.ts';

const ENTER = `
set -e
ip link set lo up
mount -t tmpfs tmpfs /run
mount --bind "$2/hosts" /etc/hosts
exec "$0" "$1" "$2" "$3" "$4"
`;

async function ask(roundTripMs: number, ipv6: Ipv6): Promise<Outcome> {
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-slow-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const both = [FAR.ipv6, FAR.ipv4].map((address) => `${address} ${NAMES.join(' ')}\n`);
  await writeFile(join(directory, 'hosts'), `127.0.0.1 localhost\n${both.join('')}`);
  const world = [
    process.execPath,
    join(import.meta.dirname, 'world.ts'),
    directory,
    String(roundTripMs),
    ipv6,
  ];
  const { stdout } = await promisify(execFile)(
    'unshare',
    ['--net', '--mount', 'bash', '-c', ENTER, ...world],
    {
      timeout: 110_000,
    },
  );
  return JSON.parse(stdout) as Outcome;
}

describe.each([
  ['the system knows no way by IPv6', 'absent'],
  ['packets of IPv6 are lost', 'lost'],
] as const)('where %s', (_, ipv6) => {
  it.each([300, 600])(
    'everything that the product connects to is reached, %i ms away',
    async (roundTripMs) => {
      const outcome = await ask(roundTripMs, ipv6);
      expect(outcome).toMatchObject({
        direct: 200,
        through: 200,
        check: '0',
        cluster: 'answered',
        spans: 'arrived',
      });
      expect(outcome.roundTripMs).toBeGreaterThanOrEqual(roundTripMs);
    },
  );
});

it('the token cache is connected to where packets of IPv6 are lost, though it has a second in all', async () => {
  expect(await ask(100, 'lost')).toMatchObject({ cache: 'connected' });
});
