/** Brokers before one cluster and one provider, which share their tokens in a Redis. */

import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '@redis/client';
import { onTestFinished } from 'vitest';
import { runBroker, startWorld, type World } from '../../broker/running-broker.ts';
import { createCertificateAuthority } from '../../support/certificate-authority.ts';
import type { Redis } from './redis.ts';

export const authority = createCertificateAuthority('of the cache');

const PASSWORD = 'pass-of-the-cache';
/** With the rights that the reference page names, and no other. */
export const USERS = [
  `user broker on >${PASSWORD} ~token-sidecar:broker:* -@all +pttl +getrange +set +del`,
  `user default on >${PASSWORD} ~* +@all`,
];

export const newKey = (): string => randomBytes(32).toString('base64');

export interface Mounted {
  readonly current?: string;
  readonly previous?: string;
  readonly password?: string;
  readonly ca?: string;
}

/** What is mounted for the cache of one broker; what is written again is followed. */
export async function mount({ current = newKey(), previous, password = PASSWORD, ca }: Mounted = {}) {
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-cache-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const path = (...parts: string[]): string => join(directory, ...parts);
  for (const part of ['key', 'auth', 'ca']) await mkdir(path(part));
  await writeFile(path('key', 'current'), current);
  if (previous !== undefined) await writeFile(path('key', 'previous'), previous);
  await writeFile(path('auth', 'username'), 'broker\n');
  await writeFile(path('auth', 'password'), password);
  await writeFile(path('ca', 'ca.crt'), ca ?? authority.cert);
  return { path, current };
}

export async function runWithCache(
  world: World,
  { port }: Pick<Redis, 'port'>,
  mounted: Awaited<ReturnType<typeof mount>>,
  settings: Readonly<Record<string, string>> = {},
) {
  const broker = await runBroker(world, {
    'cache-url': `rediss://127.0.0.1:${port}`,
    'cache-ca-file': mounted.path('ca', 'ca.crt'),
    'cache-auth-dir': mounted.path('auth'),
    'cache-key-dir': mounted.path('key'),
    // Slow machines are not what is tested.
    'cache-timeout': '2s',
    ...settings,
  });
  let pods = 0;
  return {
    ...broker,
    /** The token of a profile's one credential, for a pod that has not asked before: each may ask a few times alone. */
    async token(profile: string): Promise<string> {
      const pod = world.cluster.pod('shop', 'web', `web-${++pods}-at-${broker.port}`);
      const { status, body } = await broker.askAs(pod, { path: `/token/${profile}/${profile}` });
      if (status !== 200 || body.access_token === undefined) {
        throw new Error(`${profile}: ${status} ${body.error} ${body.error_description}`);
      }
      return body.access_token;
    },
    async looks(): Promise<Readonly<Record<string, number>>> {
      const { text } = await broker.probe('/metrics');
      const lines = text.matchAll(
        /^token_sidecar_broker_cache_requests_total\{result="(\w+)"\} ([1-9]\d*)$/gm,
      );
      return Object.fromEntries([...lines].map(([, result, count]) => [result, Number(count)]));
    },
    async metric(name: string): Promise<number> {
      const { text } = await broker.probe('/metrics');
      const [, value] = new RegExp(`^token_sidecar_broker_cache_${name} (\\S+)$`, 'm').exec(text) ?? [];
      return Number(value);
    },
    /** Resolves once it has been connected so many times. */
    async connected(times: number): Promise<void> {
      const lines = () => broker.seen.filter(({ msg }) => msg === 'the token cache is connected');
      await broker.logged(() => lines().length >= times);
    },
  };
}

/** A cluster whose pods may have a credential of each of these profiles. */
export async function startShop(...profiles: string[]): Promise<World> {
  const world = await startWorld();
  for (const name of profiles) world.putProfile(name, world.spec);
  return world;
}

/** With every right. */
export async function operate({ port }: Redis) {
  const client = createClient({
    socket: { host: '127.0.0.1', port, tls: true, ca: authority.cert, reconnectStrategy: false },
    password: PASSWORD,
    RESP: 2,
  });
  client.on('error', () => undefined);
  await client.connect();
  onTestFinished(() => client.destroy());
  return client;
}

/** Resolves once so many tokens are stored, and nobody claims another. */
export async function stored(
  client: { keys(pattern: string): Promise<string[]> },
  count: number,
): Promise<void> {
  for (;;) {
    const names = await client.keys('*');
    if (names.length === count && names.every((name) => !name.endsWith(':claim'))) return;
  }
}
