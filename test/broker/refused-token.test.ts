/** A token that upstreams refuse before its time, as after a change of the provider's key: what pods tell the broker, and get. */

import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { LookupFunction } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { OF_ONE_CALLER } from '../../src/broker/token-endpoint.ts';
import { createCredentialsMetrics } from '../../src/platform/mounted/metrics.ts';
import { Registry } from '../../src/platform/prometheus.ts';
import type { Clock } from '../../src/platform/time/clock.ts';
import { TokenSources } from '../../src/sidecar/token-sources.ts';
import { createTokenMetrics } from '../../src/token/metrics.ts';
import type { TokenSource } from '../../src/token/token-source.ts';
import { credentialConfig } from '../support/credential-config.ts';
import { mountSecret } from '../support/kubelet-secret.ts';
import { captureLog } from '../support/log-capture.ts';
import { strictCertificateMetrics } from '../support/proxy-metrics.ts';
import { answer } from '../support/scripted-token-endpoint.ts';
import { ShiftedClock } from '../support/shifted-clock.ts';
import { volume } from '../support/volume.ts';
import { RENEWAL } from '../token/policy.ts';
import { bulk, RespServer } from './cache/resp-server.ts';
import { CA, HOST, runBroker, startWorld, type World } from './running-broker.ts';

const hashOf = (token: string) => createHash('sha256').update(token).digest('base64url');
const reporting = (token: string) => ({ form: { refused_token_sha256: hashOf(token) } });

/** A token younger than a second is not renewed for a 401: another one would not be taken either. */
const OLD_ENOUGH_MS = 1000;

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Whose time can be moved on for broker, sidecars and cluster alike. */
async function startShiftedWorld() {
  const clock = new ShiftedClock();
  return { ...(await startWorld(undefined, clock)), clock };
}

const addresses: LookupFunction = (_host, options, callback) => {
  if (options.all === true) callback(null, [{ address: '127.0.0.1', family: 4 }]);
  else callback(null, '127.0.0.1', 4);
};

async function startSidecar(
  { cluster, clock }: World,
  tokenUrl: string,
  name = 'web-1',
): Promise<TokenSource> {
  const volume = await mountSecret({ token: cluster.token(cluster.pod('shop', 'web', name)) });
  const caFile = join(volume.directory, 'ca.crt');
  await writeFile(caFile, CA);
  const registry = new Registry();
  const sources = new TokenSources({
    clock,
    random: Math.random,
    metrics: createTokenMetrics(registry),
    credentialsMetrics: createCredentialsMetrics(registry),
    certificateMetrics: strictCertificateMetrics(registry),
    log: captureLog().log,
    lookup: addresses,
  });
  onTestFinished(() => sources.close());
  const [opened] = await sources.open([
    credentialConfig({
      directory: volume.directory,
      tokenUrl,
      clientAuth: { method: 'kubernetes_jwt', tokenFile: 'token' },
      tls: { caFile },
      renewal: { ...RENEWAL, startupJitterMs: 0, recoveryMs: 5000 },
    }),
  ]);
  if (opened === undefined) throw new Error('not opened');
  await opened.source.firstToken;
  return opened.source;
}

it('after a change of key all pods have a token that works at once, by one grant', async () => {
  const world = await startShiftedWorld();
  const { port } = await runBroker(world);
  const url = `https://${HOST}:${port}/token/payments/payments`;
  const pods = await Promise.all(['a', 'b', 'c'].map((name) => startSidecar(world, url, name)));
  world.clock.advance(OLD_ENOUGH_MS);
  // The upstream answers 401 to what was signed by the old key.
  const replaced = await Promise.all(pods.map((pod) => pod.forUpstream('api').replace('Bearer token-1')));
  expect(replaced).toEqual(pods.map(() => 'Bearer token-2'));
  expect(world.provider.received).toHaveLength(2);
}, 20_000);

it('a provider that has not said that it takes reports gets none', async () => {
  const world = await startShiftedWorld();
  const source = await startSidecar(world, world.provider.url);
  world.clock.advance(OLD_ENOUGH_MS);
  expect(await source.forUpstream('api').replace('Bearer token-1')).toBe('Bearer token-2');
  expect(world.provider.received.map(({ form }) => form.has('refused_token_sha256'))).toEqual([false, false]);
});

/** Each with forty reports. */
const PODS = volume(2, 25);

it('hundreds of reports at once cause one grant, and further ones none', async () => {
  const world = await startShiftedWorld();
  const { askAs, seen } = await runBroker(world);
  const pods = Array.from({ length: PODS }, (_, n) => world.cluster.pod('shop', 'web', `web-${n}`));
  const [first] = pods;
  if (first === undefined) throw new Error('no pod');
  expect((await askAs(first)).body).toMatchObject({
    access_token: 'token-1',
    refused_token_sha256_supported: true,
  });
  world.clock.advance(OLD_ENOUGH_MS);
  const reports = pods.flatMap((pod) =>
    Array.from({ length: pod === first ? 39 : 40 }, () => askAs(pod, reporting('token-1'))),
  );
  const answers = (await Promise.all(reports)).map(({ status, body }) => `${status} ${body.access_token}`);
  expect(new Set(answers)).toEqual(new Set(['200 token-2']));
  expect(world.provider.received).toHaveLength(2);
  // The next one is refused as well: that no renewal cures.
  world.clock.advance(OLD_ENOUGH_MS);
  const other = world.cluster.pod('shop', 'web', 'another');
  expect(await askAs(other, reporting('token-2'))).toMatchObject({
    status: 200,
    body: { access_token: 'token-2' },
  });
  expect(world.provider.received).toHaveLength(2);
  expect(seen.filter(({ reportsRefusedToken }) => reportsRefusedToken === true)).toHaveLength(PODS * 40);
}, 60_000);

it('a report of a replaced or unknown token is answered with the present token', async () => {
  const world = await startShiftedWorld();
  const { askAs } = await runBroker(world);
  const pod = world.cluster.pod('shop', 'web');
  await askAs(pod);
  world.clock.advance(OLD_ENOUGH_MS);
  expect((await askAs(pod, reporting('token-0'))).body.access_token).toBe('token-1');
  expect(world.provider.received).toHaveLength(1);
});

it.each(['x', hashOf('token-1').slice(1), `${hashOf('token-1')}=`, `${'A'.repeat(42)}B`])(
  'refuses %s as a hash',
  async (text) => {
    const world = await startShiftedWorld();
    const { askAs } = await runBroker(world);
    const refused = await askAs(world.cluster.pod('shop', 'web'), { form: { refused_token_sha256: text } });
    expect(refused).toMatchObject({ status: 400, body: { error: 'invalid_request' } });
    expect(world.provider.received).toEqual([]);
  },
);

it('a report from a caller without the right, or too often, renews nothing', async () => {
  const world = await startShiftedWorld();
  const { askAs } = await runBroker(world);
  const pod = world.cluster.pod('shop', 'web');
  await askAs(pod);
  world.clock.stop();
  const hasty = world.cluster.pod('shop', 'web', 'hasty');
  await Promise.all(
    Array.from({ length: OF_ONE_CALLER.burst + 1 }, () => askAs(hasty, reporting('token-0'))),
  );
  const own = await askAs(hasty, reporting('token-1'));
  expect(own).toMatchObject({ status: 429 });
  world.clock.advance(OLD_ENOUGH_MS);
  const stranger = await askAs(world.cluster.pod('other', 'web'), reporting('token-1'));
  expect(stranger).toMatchObject({ status: 400, body: { error: 'unauthorized_client' } });
  expect(world.provider.received).toHaveLength(1);
}, 20_000);

it('while the provider gives no other token, reporters are told to come again, and others get the held one', async () => {
  const world = await startShiftedWorld();
  const { askAs } = await runBroker(world);
  const pod = world.cluster.pod('shop', 'web');
  await askAs(pod);
  world.clock.advance(OLD_ENOUGH_MS);
  world.provider.script = answer(503, () => '');
  const reported = await askAs(pod, reporting('token-1'));
  expect(reported).toMatchObject({ status: 503, body: { error: 'temporarily_unavailable' } });
  expect(Number(reported.headers['retry-after'])).toBeGreaterThan(0);
  expect((await askAs(pod)).body.access_token).toBe('token-1');
}, 20_000);

/** A server that keeps what it is given, for as long as it is told to. */
function keeping(clock: Clock): Parameters<typeof RespServer.start>[0] {
  const kept = new Map<string, { readonly value: string; readonly endsAtMs: number }>();
  return ([command, name = '', value = '', ...options]) => {
    const before = kept.get(name);
    if (command === 'PTTL') {
      return before === undefined ? ':-2\r\n' : `:${Math.ceil(before.endsAtMs - clock.monotonicMs())}\r\n`;
    }
    if (command === 'GETRANGE') return bulk(before?.value ?? '');
    if (command === 'DEL') return kept.delete(name) ? ':1\r\n' : ':0\r\n';
    if (options[0] === 'NX' && before !== undefined) return '$-1\r\n';
    kept.set(name, { value, endsAtMs: clock.monotonicMs() + Number(options.at(-1)) });
    return '+OK\r\n';
  };
}

it('of replicas that share a cache none takes the refused token again, and one grant is for all', async () => {
  const world = await startShiftedWorld();
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-cache-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  await writeFile(join(directory, 'current'), randomBytes(32).toString('base64'));
  const store = await RespServer.start(keeping(world.clock));
  const settings = {
    'cache-url': `redis://127.0.0.1:${store.port}`,
    'cache-key-dir': directory,
    // Slow machines are not what is tested.
    'cache-timeout': '2s',
  };
  const pod = world.cluster.pod('shop', 'web');
  const one = await runBroker(world, settings);
  expect((await one.askAs(pod)).body.access_token).toBe('token-1');
  while (!store.received.some(([command, name]) => command === 'DEL' && name?.endsWith(':claim') === true))
    await turn();
  const two = await runBroker(world, settings);
  expect((await two.askAs(pod)).body.access_token).toBe('token-1');
  world.clock.advance(OLD_ENOUGH_MS);
  // A replica that has just started finds the refused token in the cache.
  const three = await runBroker(world, settings);
  expect((await three.askAs(pod, reporting('token-1'))).body.access_token).toBe('token-2');
  while (store.received.filter(([command]) => command === 'DEL').length < 3) await turn();
  expect((await one.askAs(pod, reporting('token-1'))).body.access_token).toBe('token-2');
  expect((await two.askAs(pod, reporting('token-1'))).body.access_token).toBe('token-2');
  const four = await runBroker(world, settings);
  expect((await four.askAs(pod)).body.access_token).toBe('token-2');
  expect(world.provider.received).toHaveLength(2);
}, 30_000);
