/** Keys and clients that are followed: each change is taken, told and counted once, and what is wrong changes nothing. */

import { mkdir, mkdtemp, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { readClientsDirectory, watchClients } from '../../src/issuer/client-sources.ts';
import { createClientSet, defineClients } from '../../src/issuer/clients.ts';
import {
  createKeyRing,
  generateSigningKey,
  openPublishedKeys,
  watchSigningKey,
} from '../../src/issuer/keys.ts';
import { captureLog } from '../support/log-capture.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { until } from '../support/until.ts';

type ClientsResult = Awaited<ReturnType<typeof readClientsDirectory>>;

const keys = await Promise.all(Array.from({ length: 3 }, () => generateSigningKey('EdDSA')));
const [A, B, C] = keys as [(typeof keys)[0], (typeof keys)[0], (typeof keys)[0]];
const pemOf = (key: typeof A): string => key.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();

async function setUp() {
  const root = await mkdtemp(join(tmpdir(), 'token-sidecar-followed-'));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  const { log, lines } = captureLog();
  const clock = new ManualClock();
  const metrics = {
    requested: vi.fn(),
    reloaded: vi.fn(),
    connectionDropped: vi.fn(),
    proofRefused: vi.fn(),
    clients: vi.fn(),
  };
  /** Whatever the system says of files and when: everything is looked at each minute. */
  const watch = vi.fn(() => {
    throw Object.assign(new Error('no watches'), { code: 'ENOSPC' });
  });
  return {
    root,
    lines,
    clock,
    metrics,
    options: { clock, metrics, log, pollMs: 60_000, watch: watch as never },
    said: () => lines.splice(0).map((line) => JSON.parse(line)),
    /** In one step, so that no reading falls between. */
    async place(name: string, content: string) {
      await writeFile(join(root, '..next'), content);
      await rename(join(root, '..next'), join(root, name));
    },
    /** Lets it look once more, and waits for what that leads to. */
    async look(happened: () => boolean) {
      await clock.advance(60_000);
      await until(happened);
    },
  };
}

describe('a signing key', () => {
  it('signs as soon as it is read, and one that cannot be used leaves the one before', async () => {
    const { root, options, place, look, metrics, said } = await setUp();
    await place('key.pem', pemOf(A));
    const file = { path: join(root, 'key.pem'), algorithm: 'EdDSA', key: '--signing-key-file' } as const;
    const followed = await watchSigningKey(file, options);
    onTestFinished(followed.close);
    expect(followed.keys.current().keyId).toBe(A.keyId);
    expect([metrics.reloaded.mock.calls, said()]).toEqual([[], []]);

    await place('key.pem', pemOf(B));
    await look(() => metrics.reloaded.mock.calls.length === 1);
    expect(followed.keys.current().keyId).toBe(B.keyId);
    expect(metrics.reloaded.mock.calls).toEqual([['signing_key', 'success']]);
    expect(said()).toEqual([expect.objectContaining({ level: 'info', kid: B.keyId, alg: 'EdDSA' })]);

    for (const [content, why] of [
      ['hunter2', 'an unencrypted private key in PEM'],
      [undefined, 'a readable file'],
    ]) {
      metrics.reloaded.mockClear();
      if (content === undefined) await rm(join(root, 'key.pem'));
      else await place('key.pem', content);
      await look(() => metrics.reloaded.mock.calls.length === 1);
      expect(metrics.reloaded.mock.calls).toEqual([['signing_key', 'failure']]);
      expect(followed.keys.current().keyId).toBe(B.keyId);
      expect(said()).toEqual([
        expect.objectContaining({
          level: 'error',
          problem: expect.stringMatching(`^--signing-key-file: ".*key.pem": expected ${why}`),
        }),
      ]);
    }
  });

  it('that cannot be used from the start is a problem, and is not watched', async () => {
    const { root, options, clock } = await setUp();
    const file = { path: join(root, 'key.pem'), algorithm: 'EdDSA', key: '--signing-key-file' } as const;
    await expect(watchSigningKey(file, options)).rejects.toMatchObject({
      problems: [{ key: '--signing-key-file', value: file.path }],
    });
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('published keys', () => {
  const kids = (ring: ReturnType<typeof createKeyRing>) => ring.jwks().keys.map(({ kid }) => kid);

  it('are shown from when they are asked for, and each change of them', async () => {
    const { root, options, place, look, metrics, said, clock } = await setUp();
    await place('b.pem', pemOf(B));
    await place('.hidden.pem', 'x');
    await place('readme.txt', 'x');
    const published = await openPublishedKeys({ path: root, key: '--published-keys-dir' }, options);
    const ring = createKeyRing(A, clock);
    expect([said(), metrics.reloaded.mock.calls]).toEqual([[], []]);
    published.showIn(ring);
    expect(kids(ring)).toEqual([A.keyId, B.keyId]);
    expect(said()).toEqual([expect.objectContaining({ level: 'info', kids: [B.keyId] })]);

    await place('a-first.pem', pemOf(C));
    await look(() => metrics.reloaded.mock.calls.length === 1);
    expect(kids(ring)).toEqual([A.keyId, C.keyId, B.keyId]);
    expect(metrics.reloaded.mock.calls).toEqual([['published_keys', 'success']]);
    expect(said()).toEqual([expect.objectContaining({ kids: [C.keyId, B.keyId] })]);

    await place('b.pem', 'hunter2');
    await look(() => metrics.reloaded.mock.calls.length === 2);
    expect(metrics.reloaded.mock.calls[1]).toEqual(['published_keys', 'failure']);
    expect(kids(ring)).toEqual([A.keyId, C.keyId, B.keyId]);
    expect(said()).toEqual([
      expect.objectContaining({ level: 'error', problems: [expect.stringMatching(/b\.pem: expected/)] }),
    ]);

    await place('b.pem', pemOf(B));
    await look(() => metrics.reloaded.mock.calls.length === 3);
    await place('b.pem', pemOf(A));
    await look(() => metrics.reloaded.mock.calls.length === 4);
    expect(kids(ring)).toEqual([A.keyId, C.keyId]);
    published.close();
    expect(clock.pendingTimers).toBe(0);
  });

  it.each<[string, (root: string) => Promise<unknown>, object]>([
    [
      'a directory that is not there',
      (root) => rm(root, { recursive: true }),
      { key: 'dir', expected: 'a readable directory of keys (ENOENT)' },
    ],
    [
      'a key that is a directory',
      (root) => mkdir(join(root, 'a.pem')),
      { key: 'dir', expected: expect.stringMatching(/^readable keys, but /) },
    ],
    [
      'seventeen keys',
      (root) =>
        Promise.all(
          Array.from({ length: 17 }, (_, index) => writeFile(join(root, `${index}.pem`), pemOf(A))),
        ),
      { key: 'dir', expected: 'at most 16 keys' },
    ],
  ])('of %s are a problem by the flag', async (_, prepare, problem) => {
    const { root, options } = await setUp();
    await prepare(root);
    await expect(openPublishedKeys({ path: root, key: 'dir' }, options)).rejects.toMatchObject({
      problems: [{ value: root, ...problem }],
    });
  });

  it('may be sixteen, and each that cannot be used is named', async () => {
    const { root, options } = await setUp();
    for (let index = 0; index < 16; index++) await writeFile(join(root, `${index}.pem`), pemOf(A));
    (await openPublishedKeys({ path: root, key: 'dir' }, options)).close();
    for (const index of [3, 5]) await writeFile(join(root, `${index}.pem`), 'x');
    await expect(openPublishedKeys({ path: root, key: 'dir' }, options)).rejects.toMatchObject({
      problems: [{ key: join(root, '3.pem') }, { key: join(root, '5.pem') }],
    });
  });
});

describe('clients', () => {
  const shop = defineClients([{ clientId: 'shop', clientSecret: 'x' }]);
  const none = createClientSet([]);

  it('are read again for a change, told with their number, and once for each content', async () => {
    const { root, options, look, metrics, said, clock } = await setUp();
    let next: ClientsResult = { outcome: { clients: shop }, digest: '1', directories: [root] };
    let reads = 0;
    const read = async () => {
      reads++;
      return next;
    };
    const followed = await watchClients(read, options);
    expect(followed.store.current()).toBe(shop);
    expect(metrics.clients.mock.calls).toEqual([[1]]);
    expect(said()).toEqual([expect.objectContaining({ level: 'info', clients: 1 })]);

    const before = reads;
    await look(() => reads > before);
    expect([metrics.reloaded.mock.calls, said()]).toEqual([[], []]);

    next = { outcome: { problems: [{ key: 'k', expected: 'better' }] }, digest: '2', directories: [root] };
    await look(() => metrics.reloaded.mock.calls.length === 1);
    expect(metrics.reloaded.mock.calls).toEqual([['clients', 'failure']]);
    expect(followed.store.current()).toBe(shop);
    expect(said()).toEqual([
      expect.objectContaining({ level: 'error', clients: 1, problems: ['k: expected better'] }),
    ]);
    const again = reads;
    await look(() => reads > again);
    expect(said()).toEqual([]);

    next = { outcome: { clients: none }, digest: '3', directories: [root] };
    await look(() => metrics.reloaded.mock.calls.length === 2);
    expect(metrics.reloaded.mock.calls[1]).toEqual(['clients', 'success']);
    expect(metrics.clients.mock.calls.at(-1)).toEqual([0]);
    expect(said()).toEqual([expect.objectContaining({ level: 'warn', clients: 0 })]);
    followed.close();
    expect(clock.pendingTimers).toBe(0);
  });

  it('are watched for where the last reading says, and nowhere else', async () => {
    const { root, options, look, metrics, clock } = await setUp();
    const directories = [root, join(root, 'a'), join(root, 'b')];
    for (const directory of directories.slice(1)) await mkdir(directory);
    let next: ClientsResult = { outcome: { clients: shop }, digest: '1', directories };
    const followed = await watchClients(async () => next, options);
    expect(clock.pendingTimers).toBe(3);
    next = { outcome: { clients: none }, digest: '2', directories: directories.slice(0, 1) };
    await look(() => metrics.reloaded.mock.calls.length === 1);
    await until(() => clock.pendingTimers === 1);
    followed.close();
    expect(clock.pendingTimers).toBe(0);
  });

  it('that are wrong from the start are a problem', async () => {
    const { options } = await setUp();
    const problems = [{ key: 'k', expected: 'better' }];
    await expect(
      watchClients(async () => ({ outcome: { problems }, digest: '', directories: [] }), options),
    ).rejects.toMatchObject({ problems });
  });
});

describe('a directory of clients', () => {
  async function client(root: string, name: string, files: Readonly<Record<string, string>>) {
    await mkdir(join(root, name));
    for (const [file, text] of Object.entries(files)) await writeFile(join(root, name, file), text);
  }

  it('is read with every field, its hidden files apart', async () => {
    const { root } = await setUp();
    await client(root, 'shop', {
      client_id: 'shop',
      client_secret: 'x',
      second_client_secret: 'y',
      scope: ' read\n write ',
      audience: 'a b',
      token_lifetime: '9s',
      dpop_bound_access_tokens: 'true',
      other: 'x',
    });
    await client(root, '.hidden', {});
    const { outcome, directories } = await readClientsDirectory(root, '--clients-dir');
    if ('problems' in outcome) throw new Error(JSON.stringify(outcome));
    expect(outcome.clients.find('shop')).toMatchObject({
      secrets: [{ kind: 'sha256' }, { kind: 'sha256' }],
      scopes: ['read', 'write'],
      audience: ['a', 'b'],
      tokenLifetimeSeconds: 9,
      dpopBoundAccessTokens: true,
    });
    expect(directories).toEqual([root, join(root, 'shop')]);
  });

  it('says what is wrong by file, client and flag', async () => {
    const { root } = await setUp();
    const problems = async () => {
      const { outcome } = await readClientsDirectory(root, '--clients-dir');
      return 'problems' in outcome ? outcome.problems : [];
    };
    await client(root, 'a', { client_id: 'same', client_secret: 'x' });
    await client(root, 'b', { client_id: 'same', client_secret: 'x' });
    expect(await problems()).toEqual([
      { key: join(root, 'b/client_id'), value: 'same', expected: 'a client id used only once' },
    ]);
    await client(root, 'c', { client_id: 'c', client_secret: 'x', scope: '"' });
    await client(root, 'd', { client_secret: 'x' });
    await writeFile(join(root, 'e'), '');
    expect(await problems()).toMatchObject([
      { key: join(root, 'c/scope'), value: '"' },
      { key: join(root, 'd'), expected: expect.stringMatching(/^the files of a client, but /) },
      { key: join(root, 'e'), expected: 'a directory with the files of one client' },
    ]);
    await rm(root, { recursive: true });
    expect(await problems()).toEqual([
      { key: '--clients-dir', value: root, expected: 'a readable directory (ENOENT)' },
    ]);
  });

  it('is read again when a client goes while it is read', async () => {
    const { root } = await setUp();
    await client(root, 'a-broken', { client_secret: 'x' });
    for (let index = 0; index < 40; index++)
      await client(root, `c${index}`, { client_id: `c${index}`, client_secret: 'x' });
    const reading = readClientsDirectory(root, 'k');
    // As long as it takes to have begun: each client takes several such steps more.
    for (let step = 0; step < 6; step++) await stat(root);
    await rename(join(root, 'a-broken'), join(root, '.gone'));
    const { outcome } = await reading;
    expect('clients' in outcome && outcome.clients.size).toBe(40);
  });

  it('has another digest when anything in it changes, wrong or right', async () => {
    const { root } = await setUp();
    const digests = new Set<string>();
    const digest = async () => digests.add((await readClientsDirectory(root, 'k')).digest);
    await client(root, 'a', { client_id: 'a', client_secret: 'x' });
    await digest();
    await digest();
    expect(digests.size).toBe(1);
    await writeFile(join(root, 'a/client_secret'), 'y');
    await digest();
    await writeFile(join(root, 'a/scope'), '"');
    await digest();
    await writeFile(join(root, 'a/scope'), 'read');
    await digest();
    await client(root, 'b', { client_id: 'b', client_secret: 'x' });
    await digest();
    expect(digests.size).toBe(5);
  });
});
