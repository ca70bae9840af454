/** The broker's parts that need the Kubernetes API. Loaded once the settings are valid: the client takes some 30 MB. */

import { createCallerMetrics } from '../callers/metrics.ts';
import { createServiceAccountVerifier } from '../callers/service-account-verifier.ts';
import { judge } from '../injector/profile-rules.ts';
import { watchClusterProfiles } from '../injector/profiles/profile-store.ts';
import { SidecarError } from '../platform/errors.ts';
import { makePrivateDirectory } from '../platform/files/private-directory.ts';
import { connectKubernetes } from '../platform/kubernetes/client.ts';
import type { Logger } from '../platform/log/logger.ts';
import { createCredentialsMetrics } from '../platform/mounted/metrics.ts';
import { forgetSeries, type Registry } from '../platform/prometheus.ts';
import type { Clock } from '../platform/time/clock.ts';
import { loggedCertificateMetrics } from '../platform/x509/certificate-metrics.ts';
import { TokenSources } from '../sidecar/token-sources.ts';
import { createTokenMetrics } from '../token/metrics.ts';
import { createGrants } from './grants.ts';
import type { BrokerMetrics } from './metrics.ts';
import { brokeredCredentials } from './profiles.ts';
import { watchObjects } from './secret-volume.ts';
import type { BrokerConfig } from './settings.ts';
import { createTokenEndpoint, type TokenEndpoint } from './token-endpoint.ts';

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
      : await (await import('./open-cache.ts')).openBrokerCache(config.cache, {
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
