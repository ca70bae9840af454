import { spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as passed } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { answer, answerToken } from '../support/scripted-token-endpoint.ts';
import { PROFILES, runBroker, SECRETS, secret, startWorld } from './running-broker.ts';

it('while the provider is down, the broker answers with Retry-After, and asks the provider once when it is back', async () => {
  const world = await startWorld(answer(503, ''));
  const { askAs } = await runBroker(world);
  const pods = Array.from({ length: 8 }, (_, n) => world.cluster.pod('shop', 'web', `web-${n}`));
  const away = await Promise.all(pods.map((pod) => askAs(pod)));
  for (const { status, headers, body } of away) {
    expect([status, body.error]).toEqual([503, 'temporarily_unavailable']);
    expect(Number(headers['retry-after'])).toBeGreaterThanOrEqual(1);
    expect(Number(headers['retry-after'])).toBeLessThanOrEqual(10);
  }
  world.provider.script = answerToken();
  const before = world.provider.received.length;
  const backAt = performance.now();
  for (const pod of pods) {
    while ((await askAs(pod)).status !== 200) await passed(250);
  }
  expect(performance.now() - backAt).toBeLessThan(5000);
  expect(world.provider.received.length).toBe(before + 1);
}, 20_000);

it('all callers wait for one grant of a slow provider', async () => {
  const world = await startWorld();
  const { promise, resolve } = Promise.withResolvers<void>();
  const give = answerToken();
  world.provider.script = (response, request) => void promise.then(() => give(response, request));
  const { askAs } = await runBroker(world);
  const answers = Promise.all([1, 2, 3].map((n) => askAs(world.cluster.pod('shop', 'web', `web-${n}`))));
  await world.provider.requests(1);
  resolve();
  expect((await answers).map(({ body }) => body.access_token)).toEqual(['token-1', 'token-1', 'token-1']);
});

it('a Secret that appears late or changes takes effect', async () => {
  const world = await startWorld();
  const { cluster, provider } = world;
  cluster.api.delete(SECRETS, 'oauth');
  const { askAs } = await runBroker(world);
  const pod = cluster.pod('shop', 'web');
  expect(await askAs(pod)).toMatchObject({ status: 503, body: { error: 'temporarily_unavailable' } });
  cluster.api.put(SECRETS, {
    metadata: { name: 'oauth' },
    data: secret({ client_id: 'a', client_secret: 'first' }),
  });
  await provider.requests(1);
  cluster.api.put(SECRETS, {
    metadata: { name: 'oauth' },
    data: secret({ client_id: 'a', client_secret: 'second' }),
  });
  await provider.requests(2);
  expect(provider.received.map(({ form }) => form.get('client_secret'))).toEqual(['first', 'second']);
  while ((await askAs(pod)).body.access_token !== 'token-2');
});

it('profiles that are added, changed or removed take effect', async () => {
  const world = await startWorld();
  const { cluster, putProfile, spec, credential, provider } = world;
  const { askAs } = await runBroker(world);
  const web = cluster.pod('shop', 'web');
  const other = cluster.pod('other', 'web');
  expect((await askAs(web)).status).toBe(200);
  expect((await askAs(other)).status).toBe(400);
  putProfile('payments', { ...spec, namespaces: { names: ['other'] } });
  while ((await askAs(other)).status !== 200) await passed(50);
  expect((await askAs(web)).body.error).toBe('unauthorized_client');
  // The credential has stayed what it was: so has its token.
  expect(provider.received).toHaveLength(1);

  putProfile('payments', {
    ...spec,
    namespaces: { names: ['other'] },
    credentials: [{ ...credential, scope: 'write' }],
  });
  while ((await askAs(other)).body.access_token !== 'token-2') await passed(50);
  expect(provider.received[1]?.form.get('scope')).toBe('write');

  cluster.api.delete(PROFILES, 'payments');
  while ((await askAs(other)).body.error !== 'unauthorized_client') await passed(50);
}, 20_000);

it('a caller whose right is withdrawn during the grant gets no token', async () => {
  const world = await startWorld();
  const { cluster, putProfile, spec, provider } = world;
  const { promise, resolve } = Promise.withResolvers<void>();
  const give = answerToken();
  provider.script = (response, request) => void promise.then(() => give(response, request));
  const { askAs } = await runBroker(world);
  const waiting = askAs(cluster.pod('shop', 'web'));
  await provider.requests(1);
  const stranger = cluster.pod('shop', 'late');
  putProfile('payments', { ...spec, namespaces: { names: ['other'] } });
  while ((await askAs(stranger)).body.error !== 'unauthorized_client');
  resolve();
  expect(await waiting).toMatchObject({ status: 400, body: { error: 'unauthorized_client' } });
});

it('a token for settings that changed during the grant is not given', async () => {
  const world = await startWorld();
  const { cluster, putProfile, spec, credential, provider } = world;
  putProfile('payments', { ...spec, credentials: [{ ...credential, scope: 'read write' }] });
  const { promise, resolve } = Promise.withResolvers<void>();
  const give = answerToken();
  provider.script = (response, request) => void promise.then(() => give(response, request));
  const { askAs } = await runBroker(world);
  const waiting = askAs(cluster.pod('shop', 'web'));
  await provider.requests(1);
  putProfile('payments', { ...spec, credentials: [{ ...credential, scope: 'read' }] });
  // Who says the scope of before is told so once the profile has been read.
  const late = cluster.pod('shop', 'late');
  const scopeOfBefore = { form: { scope: 'write' } };
  putProfile('marker', { ...spec, namespaces: { names: ['shop'] } });
  while (
    (await askAs(late, { path: '/token/marker/marker', ...scopeOfBefore })).body.error !== 'invalid_scope'
  );
  resolve();
  expect(await waiting).toMatchObject({ status: 503, body: { error: 'temporarily_unavailable' } });
});

it('profiles and tokens are kept while the API server is down', async () => {
  const world = await startWorld();
  const { cluster } = world;
  const { ask } = await runBroker(world);
  const token = cluster.token(cluster.pod('shop', 'web'));
  expect((await ask(token)).status).toBe(200);
  cluster.api.breakWatches();
  cluster.review = () => ({ code: 503, value: {} });
  expect((await ask(token)).status).toBe(200);
  expect((await ask(cluster.token(cluster.pod('shop', 'new')))).status).toBe(503);
});

it('a drain answers requests in flight, closes connections, and leaves no Secret on disk', async () => {
  const world = await startWorld();
  const { promise, resolve } = Promise.withResolvers<void>();
  const give = answerToken();
  world.provider.script = (response, request) => void promise.then(() => give(response, request));
  const { askAs, stop, status, logged, probe, directory } = await runBroker(world);
  const asking = askAs(world.cluster.pod('shop', 'web'));
  await world.provider.requests(1);
  stop();
  await logged(({ msg }) => msg === 'draining');
  expect((await probe('/readyz')).status).toBe(503);
  expect((await probe('/metrics')).text).toContain('token_sidecar_broker_ready 0\n');
  resolve();
  const answered = await asking;
  expect(answered).toMatchObject({ status: 200, headers: { connection: 'close' } });
  expect(await status).toBe(0);
  expect(await readdir(`${directory}/secrets`)).toEqual([]);
});

it('files of a killed broker are removed, and nothing else', async () => {
  const world = await startWorld();
  const parent = await mkdtemp(join(tmpdir(), 'token-sidecar-secrets-'));
  onTestFinished(() => rm(parent, { recursive: true, force: true }));
  await mkdir(join(parent, 'broker-before', 'payments'), { recursive: true });
  await writeFile(join(parent, 'broker-before', 'payments', 'client_secret'), 's3cret');
  const listening = `require('net').createServer().listen(process.argv[1], () => process.kill(process.pid, 'SIGKILL'))`;
  const killed = spawnSync(process.execPath, ['-e', listening, join(parent, 'broker-before', 'live')]);
  expect(killed.signal).toBe('SIGKILL');
  await writeFile(join(parent, 'kept'), '');
  const { stop, status } = await runBroker(world, { 'secrets-dir': parent });
  expect(await readdir(parent)).not.toContain('broker-before');
  stop();
  expect(await status).toBe(0);
  expect(await readdir(parent)).toEqual(['kept']);
});

it('each decision is counted', async () => {
  const world = await startWorld();
  const { askAs, probe } = await runBroker(world);
  await askAs(world.cluster.pod('shop', 'web'));
  await askAs(world.cluster.pod('other', 'web'));
  const { text } = await probe('/metrics');
  for (const line of [
    'token_sidecar_broker_ready 1',
    'token_sidecar_broker_requests_total{result="given"} 1',
    'token_sidecar_broker_requests_total{result="unauthorized_client"} 1',
    'token_sidecar_broker_credentials_open 1',
    'token_sidecar_caller_verdicts_total{result="accepted",reason=""} 2',
    'token_sidecar_caller_token_reviews_total{result="confirmed"} 2',
    'token_sidecar_token_ready{credential="payments/payments"} 1',
  ]) {
    expect(text).toContain(line);
  }
});

it('files of another running broker in the same directory stay', async () => {
  const world = await startWorld();
  const parent = await mkdtemp(join(tmpdir(), 'token-sidecar-broker-'));
  onTestFinished(() => rm(parent, { recursive: true, force: true }));
  const first = await runBroker(world, { 'secrets-dir': parent });
  expect((await first.askAs(world.cluster.pod('shop', 'web'))).status).toBe(200);
  const files = await readdir(parent, { recursive: true });
  expect(files.some((name) => name.endsWith('client_secret'))).toBe(true);
  const second = await runBroker(world, { 'secrets-dir': parent });
  expect(await readdir(parent, { recursive: true })).toEqual(expect.arrayContaining(files));
  second.stop();
  await second.status;
  expect((await readdir(parent, { recursive: true })).sort()).toEqual(files.sort());
  first.stop();
  await first.status;
  expect(await readdir(parent)).toEqual([]);
});
