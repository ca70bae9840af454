/** The broker's parts that need the Kubernetes API. Loaded once the settings are valid: the client takes some 30 MB. */

import { createGrants } from '../broker/grants.ts';
import type { BrokerMetrics } from '../broker/metrics.ts';
import { watchObjects } from '../broker/object-values.ts';
import { createTokenEndpoint, type TokenEndpoint } from '../broker/token-endpoint.ts';
import { createCallerMetrics } from '../callers/metrics.ts';
import { createServiceAccountVerifier } from '../callers/service-account-verifier.ts';
import type { Clock } from '../clock.ts';
import { createCredentialsMetrics } from '../credentials/metrics.ts';
import { SidecarError } from '../errors.ts';
import { watchClusterProfiles } from '../injector/profiles/profile-store.ts';
import { connectKubernetes } from '../kubernetes/client.ts';
import type { Logger } from '../log/logger.ts';
import { forgetSeries, type Registry } from '../prometheus.ts';
import { createTokenMetrics } from '../token/metrics.ts';
import { brokeredCredentials } from './broker-profiles.ts';
import type { BrokerConfig } from './broker-settings.ts';
import { loggedCertificateMetrics } from './certificate-metrics.ts';
import { makePrivateDirectory } from './private-directory.ts';
import { judge } from './profile-rules.ts';
import { TokenSources } from './token-sources.ts';

interface BrokerCluster {
  readonly endpoint: TokenEndpoint;
  /** Parts that are not ready yet. */
  missing(): readonly { readonly part: string; readonly name: string; readonly detail: string }[];
  openCredentials(): number;
  close(): Promise<void>;
}

interface BrokerClusterOptions {
  readonly registry: Registry;
  readonly metrics: BrokerMetrics;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
}

/** @throws {SidecarError} `configuration` if there is no API server to be found, or no directory for Secrets. */
export async function connectBroker(
  config: BrokerConfig,
  { registry, clock, random, log }: BrokerClusterOptions,
): Promise<BrokerCluster> {
  const api = connectKubernetes(config.kubeconfig, clock);
  const namespace = config.namespace ?? api.namespace;
  if (namespace === undefined) {
    throw new SidecarError('configuration', '--namespace: expected the namespace that the broker runs in');
  }
  // Loaded only on demand: its store's client takes some megabytes.
  const cache =
    config.cache === undefined
      ? undefined
      : await (await import('./broker-cache.ts')).openBrokerCache(config.cache, {
          registry,
          clock,
          random,
          log,
        });
  const directory = await makePrivateDirectory(config.secretsDirectory).catch(async (error: unknown) => {
    await cache?.close();
    throw error;
  });
  const verifier = createServiceAccountVerifier(api, {
    audience: config.audience,
    clock,
    random,
    log,
    metrics: createCallerMetrics(registry),
  });
  const profiles = watchClusterProfiles(api, { judge, clock, random, log });
  const credentials = brokeredCredentials(profiles, directory.path);
  const tokenMetrics = createTokenMetrics(registry);
  const sources = new TokenSources({
    clock,
    random,
    metrics: tokenMetrics,
    credentialsMetrics: createCredentialsMetrics(registry),
    certificateMetrics: loggedCertificateMetrics(registry, log),
    log,
    ...(cache === undefined ? {} : { sharedTokens: cache.of }),
    lookup: undefined,
  });
  const grants = createGrants({
    credentials,
    objects: watchObjects(api, namespace, { clock, random, log }),
    async openSource(credential) {
      const [opened] = await sources.open([credential]);
      if (opened === undefined) throw new Error('no source was opened');
      sources.show([opened]);
      return opened.source;
    },
    async closeSource(source) {
      await sources.close([source]);
      tokenMetrics.forget(source.name);
      await forgetSeries(registry, ({ credential }) => credential === source.name);
    },
    clock,
    log,
  });
  return {
    endpoint: createTokenEndpoint({
      verify(token, mayWait) {
        const known = verifier.known(token);
        return known?.isDue === false || !mayWait ? known?.verdict : verifier.verify(token);
      },
      credentials,
      grants,
      clock,
      log,
    }),
    missing() {
      const unread = profiles.unread();
      return [
        ...(verifier.ready() ? [] : [{ part: 'cluster keys', name: 'jwks', detail: 'they are being read' }]),
        ...(unread === undefined ? [] : [{ part: 'profiles', name: 'cluster', detail: unread }]),
      ];
    },
    openCredentials: () => grants.size,
    async close() {
      verifier.close();
      profiles.close();
      await grants.close();
      await sources.close();
      await cache?.close();
      await directory.remove();
    },
  };
}
