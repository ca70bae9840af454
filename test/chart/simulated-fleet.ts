/** A hundred sidecars' engines in this process: real Secrets, grants over real sockets, and a metrics endpoint each. */

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { createLogger } from '../../src/platform/log/logger.ts';
import { createCredentialsMetrics } from '../../src/platform/mounted/metrics.ts';
import { Registry } from '../../src/platform/prometheus.ts';
import { systemClock } from '../../src/platform/time/clock.ts';
import { openLiveCredentials } from '../../src/token/credentials.ts';
import { createTokenMetrics } from '../../src/token/metrics.ts';
import { createTokenEndpoint } from '../../src/token/provider/token-endpoint.ts';
import { openTokenSource } from '../../src/token/token-source.ts';
import { credentialConfig } from '../support/credential-config.ts';
import { mountSecret } from '../support/kubelet-secret.ts';

export interface SimulatedPod {
  readonly namespace: string;
  readonly pod: string;
  /** Of its metrics, at `address`. */
  readonly path: string;
}

export interface SimulatedFleet {
  /** All of them answer there, each under a path of its own. */
  readonly address: string;
  readonly pods: readonly SimulatedPod[];
}

/** @param names of namespaces, among which the pods are spread evenly. */
export async function startFleet(
  tokenUrl: string,
  count: number,
  names: readonly string[],
): Promise<SimulatedFleet> {
  const { directory } = await mountSecret({ client_id: 'shop', client_secret: 'secret-of-the-fleet' });
  const registries = new Map<string, Registry>();
  const pods = await Promise.all(
    Array.from({ length: count }, async (_, index): Promise<SimulatedPod> => {
      const namespace = names[index % names.length] as string;
      const pod = `${namespace}-${index}`;
      const registry = new Registry();
      const config = credentialConfig({ tokenUrl, directory });
      const source = openTokenSource({
        config,
        credentials: await openLiveCredentials(config, { clock: systemClock, pollMs: 600_000 }),
        endpoint: createTokenEndpoint(config, systemClock),
        clock: systemClock,
        random: Math.random,
        metrics: createTokenMetrics(registry),
        credentialsMetrics: createCredentialsMetrics(registry),
        log: createLogger('silent'),
      });
      onTestFinished(() => source.close());
      registries.set(`/${pod}`, registry);
      return { namespace, pod, path: `/${pod}` };
    }),
  );
  const server = createServer((request, response) => {
    const registry = registries.get(request.url ?? '');
    if (registry === undefined) {
      response.writeHead(404).end();
      return;
    }
    void registry.metrics().then((text) => {
      response.writeHead(200, { 'content-type': Registry.PROMETHEUS_CONTENT_TYPE }).end(text);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { address: `127.0.0.1:${(server.address() as AddressInfo).port}`, pods };
}
