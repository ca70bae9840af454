/** A sidecar's own token engine as the asker: by the pod's projected token, over TLS, by the broker's name. */

import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type LookupFunction } from 'node:net';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { createCredentialsMetrics } from '../../src/platform/mounted/metrics.ts';
import { Registry } from '../../src/platform/prometheus.ts';
import { systemClock } from '../../src/platform/time/clock.ts';
import { TokenSources } from '../../src/sidecar/token-sources.ts';
import { createTokenMetrics } from '../../src/token/metrics.ts';
import type { TokenSource } from '../../src/token/token-source.ts';
import { credentialConfig } from '../support/credential-config.ts';
import { freePort } from '../support/free-port.ts';
import { mountSecret } from '../support/kubelet-secret.ts';
import { captureLog } from '../support/log-capture.ts';
import { strictCertificateMetrics } from '../support/proxy-metrics.ts';
import { RENEWAL } from '../token/policy.ts';
import { CA, HOST, runBroker, startWorld, type World } from './running-broker.ts';

const addresses: LookupFunction = (_host, options, callback) => {
  const all = ['127.0.0.1', '127.0.0.2'].map((address) => ({ address, family: 4 }));
  if (options.all === true) callback(null, all);
  else callback(null, '127.0.0.1', 4);
};

async function startSidecar({ cluster }: World, port: number): Promise<TokenSource> {
  const pod = cluster.pod('shop', 'web');
  const volume = await mountSecret({ token: cluster.token(pod) });
  const caFile = join(volume.directory, 'ca.crt');
  await writeFile(caFile, CA);
  const registry = new Registry();
  const sources = new TokenSources({
    clock: systemClock,
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
      tokenUrl: `https://${HOST}:${port}/token/payments/payments`,
      clientAuth: { method: 'kubernetes_jwt', tokenFile: 'token' },
      tls: { caFile },
      // As the injector writes it.
      renewal: { ...RENEWAL, startupJitterMs: 0, recoveryMs: 5000 },
    }),
  ]);
  if (opened === undefined) throw new Error('not opened');
  return opened.source;
}

function nextToken(source: TokenSource): Promise<string | undefined> {
  return new Promise((resolve) => {
    const end = source.onToken(() => {
      end();
      resolve(source.held()?.token);
    });
  });
}

it('a sidecar gets the token, and again within 5 s after a broker returns', async () => {
  const world = await startWorld();
  const port = await freePort();
  const source = await startSidecar(world, port);
  while (source.snapshot().consecutiveFailures < 2) await new Promise((resolve) => setTimeout(resolve, 50));
  expect(source.held()).toBeUndefined();
  await runBroker(world, { listen: `127.0.0.1:${port}` });
  const backAt = performance.now();
  await source.firstToken;
  expect(performance.now() - backAt).toBeLessThan(5000);
  expect(source.held()?.token).toBe('token-1');
}, 20_000);

it('a sidecar tries the next address when a replica is gone', async () => {
  const world = await startWorld();
  const first = await runBroker(world, { listen: '127.0.0.1:0' });
  const second = await runBroker(world, { listen: `127.0.0.2:${first.port}` });
  const source = await startSidecar(world, first.port);
  await source.firstToken;
  first.stop();
  await first.status;
  const next = nextToken(source);
  expect(source.renew()).toBe('begun');
  expect(await next).toBe('token-2');
  await second.logged(({ msg }) => msg === 'token given');
  expect(source.snapshot().consecutiveFailures).toBe(0);
}, 20_000);

it('a replica killed during a request costs nothing: the token comes from the next', async () => {
  const world = await startWorld();
  let asked = 0;
  const killed = createServer((socket) => {
    // From here on its address refuses connections, as that of a process that is gone.
    killed.close();
    socket.once('data', () => {
      asked++;
      socket.destroy();
    });
  }).listen(0, '127.0.0.1');
  await once(killed, 'listening');
  const { port } = killed.address() as AddressInfo;
  await runBroker(world, { listen: `127.0.0.2:${port}` });
  const source = await startSidecar(world, port);
  expect(await source.obtain()).toBe('Bearer token-1');
  expect(asked).toBe(1);
  expect(world.provider.received).toHaveLength(1);
}, 20_000);

it('a sidecar whose pod is deleted is refused, and keeps its token', async () => {
  const world = await startWorld();
  const broker = await runBroker(world);
  const source = await startSidecar(world, broker.port);
  await source.firstToken;
  world.cluster.review = () => ({ code: 201, value: { status: { authenticated: false } } });
  const stranger = await startSidecar(world, broker.port);
  while (stranger.snapshot().lastFailure === undefined)
    await new Promise((resolve) => setTimeout(resolve, 20));
  expect(stranger.snapshot().lastFailure?.result).toBe('rejected');
  expect(source.held()?.token).toBe('token-1');
});
