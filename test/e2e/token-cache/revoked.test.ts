import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { createCacheMetrics } from '../../../src/broker/cache/metrics.ts';
import { openRedisStore } from '../../../src/broker/cache/redis-store.ts';
import { deriveKey } from '../../../src/broker/cache/sealed-token.ts';
import { createTokenCache } from '../../../src/broker/cache/token-cache.ts';
import { createCredentialsMetrics } from '../../../src/platform/mounted/metrics.ts';
import { Registry } from '../../../src/platform/prometheus.ts';
import { systemClock as clock } from '../../../src/platform/time/clock.ts';
import { loggedCertificateMetrics } from '../../../src/platform/x509/certificate-metrics.ts';
import { TokenSources } from '../../../src/sidecar/token-sources.ts';
import { createTokenMetrics } from '../../../src/token/metrics.ts';
import type { TokenSource } from '../../../src/token/token-source.ts';
import { credentialConfig } from '../../support/credential-config.ts';
import { captureLog } from '../../support/log-capture.ts';
import { ScriptedTokenEndpoint } from '../../support/scripted-token-endpoint.ts';
import { startRedis } from './redis.ts';

it('a token that an upstream refuses is gone for all replicas, and its successor is for all', async () => {
  const { port } = await startRedis();
  const provider = await ScriptedTokenEndpoint.start();
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-revoked-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  await writeFile(join(directory, 'client_id'), 'shop');
  await writeFile(join(directory, 'client_secret'), 's3cret');
  const key = deriveKey(randomBytes(32));

  async function openReplica(): Promise<TokenSource> {
    const registry = new Registry();
    const { log } = captureLog();
    const metrics = createCacheMetrics(registry);
    const address = { host: '127.0.0.1', port, tls: false };
    const store = openRedisStore({
      address,
      access: () => ({}),
      timeoutMs: 2000,
      clock,
      random: Math.random,
      metrics,
      log,
    });
    await store.tried;
    const cache = createTokenCache({
      store,
      keys: () => ({ current: key }),
      clock,
      random: Math.random,
      metrics,
    });
    const sources = new TokenSources({
      clock,
      random: Math.random,
      metrics: createTokenMetrics(registry),
      credentialsMetrics: createCredentialsMetrics(registry),
      certificateMetrics: loggedCertificateMetrics(registry, log),
      log,
      lookup: undefined,
      sharedTokens: cache.of,
    });
    onTestFinished(async () => {
      await sources.close();
      await store.close();
    });
    const [opened] = await sources.open([credentialConfig({ tokenUrl: provider.url, directory })]);
    if (opened === undefined) throw new Error('no source was opened');
    return opened.source;
  }

  const [first, second] = [await openReplica(), await openReplica()];
  const revoked = 'Bearer token-1';
  for (const source of [first, second]) {
    expect(await source.obtain()).toBe(revoked);
    source.forUpstream('api').accepted(revoked);
  }
  expect(provider.received).toHaveLength(1);
  expect(await first.forUpstream('api').replace(revoked)).toBe('Bearer token-2');
  // The other is refused in its turn, and finds the successor.
  expect(await second.forUpstream('api').replace(revoked)).toBe('Bearer token-2');
  expect(await (await openReplica()).obtain()).toBe('Bearer token-2');
  expect(provider.received).toHaveLength(2);
});
