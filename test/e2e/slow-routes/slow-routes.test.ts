/**
 * Everything that the product connects to, at the other end of a slow wire, by names with addresses of both families, of
 * which IPv6 leads nowhere. The servers are of Go. As root.
 */

import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { FAR, NAMES, type Outcome, PORTS, type Way } from './surroundings.ts';

const run = promisify(execFile);
const SERVER = join(import.meta.dirname, '../../../.cache/slow-routes/server');

const ENTER = `
set -e
ip link set lo up
mount -t tmpfs tmpfs /run
mount --bind "$2/hosts" /etc/hosts
exec "$0" "$1" "$2" "$3" "$4"
`;

beforeAll(async () => {
  const cwd = join(import.meta.dirname, 'server');
  await run('go', ['build', '-o', SERVER, '.'], { cwd, env: { ...process.env, CGO_ENABLED: '0' } });
});

async function take(way: Way): Promise<Outcome> {
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-slow-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const names = NAMES.flatMap((name) => [name, `${name}.`]).join(' ');
  const hosts = [`127.0.0.1 localhost`, `${FAR.ipv6} ${names}`, `${FAR.ipv4} ${names}`];
  await writeFile(join(directory, 'hosts'), `${hosts.join('\n')}\n`);
  const world = [join(import.meta.dirname, 'world.ts'), directory, SERVER, JSON.stringify(way)];
  const inside = ['--net', '--mount', 'bash', '-c', ENTER, process.execPath, ...world];
  const { stdout } = await run('unshare', inside, { timeout: 110_000 });
  return JSON.parse(stdout) as Outcome;
}

/** @param dot at the end of names. */
function reached(dot = '') {
  const answer = `200 api.example.com${dot}:${PORTS.api}`;
  return { direct: answer, through: answer, check: '0', cluster: 'answered', spans: 'arrived' };
}

describe.each([
  ['the system knows no way by IPv6', 'absent'],
  ['packets of IPv6 are lost', 'lost'],
] as const)('where %s', (_, ipv6) => {
  it.each([300, 600])('everything is reached, %i ms away', async (roundTripMs) => {
    const outcome = await take({ roundTripMs, ipv6, naming: 'usual' });
    expect(outcome).toMatchObject(reached());
    expect(outcome.roundTripMs).toBeGreaterThanOrEqual(roundTripMs);
  });
});

it('the token cache is reached where packets of IPv6 are lost, though it has a second in all', async () => {
  const outcome = await take({ roundTripMs: 130, ipv6: 'lost', naming: 'usual' });
  expect(outcome).toMatchObject({ ...reached(), cache: 'connected' });
});

it('everything is reached by names with a dot at their end, which Go’s TLS refuses', async () => {
  const outcome = await take({ roundTripMs: 10, ipv6: 'absent', naming: 'absolute' });
  expect(outcome).toMatchObject({ ...reached('.'), cache: 'connected' });
});
