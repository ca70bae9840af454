import { mkdir, mkdtemp, rename, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Registry } from '@prometheus-io/client';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  type LiveClients,
  readClientsDirectory,
  readClientsFile,
  watchClients,
} from '../../../src/issuer/client-sources.ts';
import { type Client, type ClientSet, createClientSet, defineClient } from '../../../src/issuer/clients.ts';
import { createIssuerMetrics, type IssuerMetrics } from '../../../src/issuer/metrics.ts';
import type { KubeletSecret } from '../../../src/platform/mounted/secret-layout.ts';
import { systemClock } from '../../../src/platform/time/clock.ts';
import { mountSecret } from '../../support/kubelet-secret.ts';
import { captureLog } from '../../support/log-capture.ts';
import { ManualClock, settle } from '../../support/manual-clock.ts';

type ClientsResult = Awaited<ReturnType<typeof readClientsDirectory>>;

type ReadClients = Parameters<typeof watchClients>[0];

interface Following extends LiveClients {
  readonly lines: readonly string[];
  readonly registry: Registry;
  /** Resolves with the result of the next reload. */
  reloaded(): Promise<'success' | 'failure'>;
}

async function follow(read: ReadClients, pollMs = 3_600_000): Promise<Following> {
  const { log, lines } = captureLog();
  const registry = new Registry();
  const counted = createIssuerMetrics(registry);
  let next = Promise.withResolvers<'success' | 'failure'>();
  const metrics: IssuerMetrics = {
    ...counted,
    reloaded(source, result) {
      counted.reloaded(source, result);
      // After the reload is complete.
      setImmediate(next.resolve, result);
    },
  };
  const live = await watchClients(read, { clock: systemClock, pollMs, metrics, log });
  onTestFinished(() => live.close());
  async function reloaded(): Promise<'success' | 'failure'> {
    const result = await next.promise;
    next = Promise.withResolvers();
    return result;
  }
  return { ...live, lines, registry, reloaded };
}

async function directory(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'token-sidecar-clients-'));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}

/** Mounts a Secret of one client below `root`, and returns it. */
async function mount(root: string, name: string, files: Record<string, string>): Promise<KubeletSecret> {
  const secret = await mountSecret(files);
  await symlink(secret.directory, join(root, name));
  return secret;
}

const client = (clientId: string): Client =>
  defineClient({ clientId, clientSecret: 'x' }, (field) => field, []) as Client;

const has = (clients: ClientSet, ...ids: string[]): boolean =>
  clients.size === ids.length && ids.every((id) => clients.find(id) !== undefined);

describe('clients in a file', () => {
  async function file(text: string): Promise<{ path: string; replace(next: string): Promise<void> }> {
    const root = await directory();
    const path = join(root, 'clients.yaml');
    await writeFile(path, text);
    return {
      path,
      async replace(next) {
        await writeFile(join(root, '.next'), next);
        await rename(join(root, '.next'), path);
      },
    };
  }

  it('are replaced as a whole when the file changes', async () => {
    const { path, replace } = await file('clients: [{ clientId: a, clientSecret: x }]');
    const live = await follow(() => readClientsFile(path, '--clients-file'));
    expect(has(live.store.current(), 'a')).toBe(true);
    await replace('clients: [{ clientId: b, clientSecret: x }, { clientId: c, clientSecret: y }]');
    expect(await live.reloaded()).toBe('success');
    expect(has(live.store.current(), 'b', 'c')).toBe(true);
    expect(await live.registry.metrics()).toContain('token_sidecar_issuer_clients 2');
  });

  it('stay as they are when anything in the new file is wrong, which is logged and counted once', async () => {
    const { path, replace } = await file('clients: [{ clientId: a, clientSecret: x }]');
    const live = await follow(() => readClientsFile(path, '--clients-file'), 30);
    await replace('clients: [{ clientId: b, clientSecret: hunter2 }, { clientId: c, scopes: [1] }]');
    expect(await live.reloaded()).toBe('failure');
    expect(has(live.store.current(), 'a')).toBe(true);
    await replace('clients: [{ clientId: b, clientSecret: hunter2 }]');
    expect(await live.reloaded()).toBe('success');
    expect(has(live.store.current(), 'b')).toBe(true);
    const failures = live.lines.filter((line) => line.includes('not reloaded'));
    expect(failures).toHaveLength(1);
    expect(failures[0]).toContain('clients[1].scopes');
    expect(live.lines.join('')).not.toContain('hunter2');
    const metrics = await live.registry.metrics();
    expect(metrics).toContain('issuer_reload_total{source="clients",result="failure"} 1');
  });

  it('that cannot be read are a problem from the start', async () => {
    const path = join(await directory(), 'absent.yaml');
    await expect(follow(() => readClientsFile(path, '--clients-file'))).rejects.toThrow(
      // The name of a directory that was made at random may look like a secret, and is shortened then.
      /--clients-file: "\/.*\/absent\.yaml": expected a readable file/,
    );
  });
});

it.each<[string, (path: string) => Promise<unknown>, string]>([
  ['a directory', (path) => mkdir(path), 'expected a regular file'],
  [
    'larger than any list of clients',
    async (path) => {
      await writeFile(path, '');
      await truncate(path, 1024 * 1024 + 1);
    },
    'expected a file of at most 1048576 bytes',
  ],
  ['no text', (path) => writeFile(path, Buffer.from([0x63, 0xff])), 'expected a readable file of UTF-8 text'],
])('a file of clients that is %s is named', async (_, make, problem) => {
  const path = join(await directory(), 'clients.yaml');
  await make(path);
  await expect(follow(() => readClientsFile(path, '--clients-file'))).rejects.toThrow(problem);
});

it('what is read when nobody follows any more changes nothing, and nothing is watched for it', async () => {
  const root = await directory();
  const clients = (clientId: string) => createClientSet([client(clientId)]);
  const pending: PromiseWithResolvers<ClientsResult>[] = [];
  let reads = 0;
  const clock = new ManualClock();
  const { log, lines } = captureLog();
  const live = await watchClients(
    () => {
      if (reads++ < 2) {
        return Promise.resolve({ outcome: { clients: clients('one') }, digest: '1', directories: [root] });
      }
      const reading = Promise.withResolvers<ClientsResult>();
      pending.push(reading);
      return reading.promise;
    },
    { clock, pollMs: 1000, metrics: createIssuerMetrics(new Registry()), log },
  );
  await clock.advance(1000);
  expect(pending).toHaveLength(1);
  live.close();
  const said = lines.length;
  pending[0]?.resolve({ outcome: { clients: clients('two') }, digest: '2', directories: [root] });
  await settle();
  expect(has(live.store.current(), 'one')).toBe(true);
  expect(lines).toHaveLength(said);
  expect(clock.pendingTimers).toBe(0);
});

describe('clients in mounted Secrets', () => {
  it('of which two have the same id are refused, by their places', async () => {
    const root = await directory();
    for (const name of ['a', 'b']) await mount(root, name, { client_id: 'shop', client_secret: 'x' });
    await expect(follow(() => readClientsDirectory(root, '--clients-dir'))).rejects.toMatchObject({
      problems: [{ key: join(root, 'b', 'client_id'), value: 'shop' }],
    });
  });

  it('are a problem by the name of the flag when their directory is not there', async () => {
    const root = join(await directory(), 'absent');
    await expect(follow(() => readClientsDirectory(root, '--clients-dir'))).rejects.toMatchObject({
      problems: [{ key: '--clients-dir', value: root, expected: 'a readable directory (ENOENT)' }],
    });
  });

  it('are read with all that they may have', async () => {
    const root = await directory();
    await mount(root, 'shop', {
      client_id: 'shop\n',
      client_secret: 's3cret\n',
      scope: 'read write\n',
      audience: 'payments\norders\n',
      token_lifetime: '60s\n',
    });
    const live = await follow(() => readClientsDirectory(root, '--clients-dir'));
    expect(live.store.current().find('shop')).toMatchObject({
      scopes: ['read', 'write'],
      audience: ['payments', 'orders'],
      tokenLifetimeSeconds: 60,
    });
  });

  it('change when the kubelet swaps one, when one comes and when one goes', async () => {
    const root = await directory();
    const shop = await mount(root, 'shop', { client_id: 'shop', client_secret: 'one' });
    const live = await follow(() => readClientsDirectory(root, '--clients-dir'));
    const before = live.store.current().find('shop');

    await shop.update({ client_id: 'shop', client_secret: 'two' });
    expect(await live.reloaded()).toBe('success');
    expect(live.store.current().find('shop')?.secrets).not.toEqual(before?.secrets);

    const bank = await mount(root, 'bank', { client_id: 'bank', client_secret: 'x' });
    expect(await live.reloaded()).toBe('success');
    expect(has(live.store.current(), 'shop', 'bank')).toBe(true);

    await bank.update({ client_id: 'bank2', client_secret: 'x' });
    expect(await live.reloaded()).toBe('success');
    expect(has(live.store.current(), 'shop', 'bank2')).toBe(true);

    await rm(join(root, 'shop'));
    expect(await live.reloaded()).toBe('success');
    expect(has(live.store.current(), 'bank2')).toBe(true);
  });

  it('may be projected into one volume', async () => {
    const root = await directory();
    await mkdir(join(root, '..2030', 'shop'), { recursive: true });
    await writeFile(join(root, '..2030', 'shop', 'client_id'), 'shop');
    await writeFile(join(root, '..2030', 'shop', 'client_secret'), 'x');
    await symlink('..2030', join(root, '..data'));
    await symlink('..data/shop', join(root, 'shop'));
    const live = await follow(() => readClientsDirectory(root, '--clients-dir'));
    expect(has(live.store.current(), 'shop')).toBe(true);
  });

  it('report everything that is wrong at once, without a secret', async () => {
    const root = await directory();
    await mount(root, 'a', { client_id: 'a' });
    await mount(root, 'b', { client_secret: 'hunter2' });
    await mount(root, 'c', { client_id: 'c', client_secret: 'hunter2', token_lifetime: 'soon' });
    await mount(root, 'd', { client_id: 'd', secret_hash: 'hunter2' });
    await writeFile(join(root, 'client_id'), 'misplaced');
    const attempt = follow(() => readClientsDirectory(root, '--clients-dir'));
    await expect(attempt).rejects.toMatchObject({
      code: 'configuration',
      problems: [
        { key: join(root, 'a', 'client_secret') },
        { key: join(root, 'b') },
        { key: join(root, 'c', 'token_lifetime'), value: 'soon' },
        { key: join(root, 'client_id') },
        { key: join(root, 'd', 'secret_hash') },
      ],
    });
    await expect(attempt).rejects.toThrow(/^((?!hunter2)[\s\S])*$/);
  });

  it('may be none, which is said', async () => {
    const root = await directory();
    const live = await follow(() => readClientsDirectory(root, '--clients-dir'));
    expect(live.store.current().size).toBe(0);
    expect(live.lines.join('')).toContain('no client is registered');
  });
});
