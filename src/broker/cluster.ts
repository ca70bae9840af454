/** Loaded late: the client of the Kubernetes API takes some 30 MB. */

import { join } from 'node:path';
import { createCallerMetrics } from '../callers/metrics.ts';
import { createServiceAccountVerifier } from '../callers/service-account-verifier.ts';
import type { SidecarMount } from '../injector/pod/sidecar-mounts.ts';
import { judge } from '../injector/profile-rules.ts';
import { credentialsViaBroker } from '../injector/profiles/broker-credentials.ts';
import { isAdmitted } from '../injector/profiles/find-profiles.ts';
import type { ProfileSource, ValidatedProfile, ValidProfile } from '../injector/profiles/profile.ts';
import { watchClusterProfiles } from '../injector/profiles/profile-store.ts';
import { SidecarError } from '../platform/errors.ts';
import { makePrivateDirectory } from '../platform/files/private-directory.ts';
import { connectKubernetes } from '../platform/kubernetes/client.ts';
import type { Logger } from '../platform/log/logger.ts';
import { createCredentialsMetrics } from '../platform/mounted/metrics.ts';
import { type Registry, removeSeries } from '../platform/prometheus.ts';
import type { Clock } from '../platform/time/clock.ts';
import { loggedCertificateMetrics } from '../platform/x509/certificate-metrics.ts';
import { TokenSources } from '../sidecar/token-sources.ts';
import { credentialFiles } from '../token/credentials.ts';
import { createTokenMetrics } from '../token/metrics.ts';
import { createGrants } from './brokered-tokens.ts';
import type { BrokerMetrics } from './metrics.ts';
import {
  type BrokerCredential,
  type BrokeredCredentials,
  type VolumeFile,
  watchObjects,
} from './secret-volume.ts';
import type { BrokerConfig } from './settings.ts';
import { createTokenEndpoint, type TokenEndpoint } from './token-endpoint.ts';

interface BrokerCluster {
  readonly endpoint: TokenEndpoint;
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

/** @throws {SidecarError} `configuration` if there is no API server or directory for Secrets. */
export async function connectBroker(
  config: BrokerConfig,
  { registry, clock, random, log }: BrokerClusterOptions,
): Promise<BrokerCluster> {
  const api = connectKubernetes(config.kubeconfig, clock);
  const namespace = config.namespace ?? api.namespace;
  if (namespace === undefined) {
    throw new SidecarError('configuration', '--namespace: expected the namespace that the broker runs in');
  }
  // The store's client takes some megabytes.
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
      await removeSeries(registry, ({ credential }) => credential === source.name);
    },
    clock,
    log,
  });
  return {
    endpoint: createTokenEndpoint({
      verify(token, from) {
        const known = verifier.known(token);
        return known?.isDue === false ? known.verdict : verifier.verify(token, from);
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

type ByName = ReadonlyMap<string, BrokerCredential>;

/** @param directory where Secrets are laid out. */
function brokeredCredentials(source: ProfileSource, directory: string): BrokeredCredentials {
  const known = new WeakMap<ValidatedProfile, ByName>();

  function credentialsOf(judged: ValidProfile): ByName {
    const found = known.get(judged) ?? workOut(judged);
    known.set(judged, found);
    return found;
  }

  function workOut(judged: ValidProfile): ByName {
    const profile = judged.identity.name;
    const root = (name: string): string => join(directory, profile, name);
    return new Map(
      credentialsViaBroker(judged, credentialFiles, root).map(({ name: own, config, mounts }) => {
        const name = `${profile}/${own}`;
        const volumes = mounts.map((mount) => ({ directory: mount.mountPath, files: filesIn(mount) }));
        return [own, { name, config: { ...config, name }, volumes }];
      }),
    );
  }

  return {
    unread: () => source.unread(),
    find(profile, credential, { namespace, serviceAccount }) {
      const judged = source.cluster(profile);
      if (judged?.state !== 'valid' || !isAdmitted(judged, { name: namespace }, source)) return undefined;
      const { serviceAccounts } = judged;
      if (serviceAccounts !== undefined && !serviceAccounts.includes(serviceAccount)) return undefined;
      return credentialsOf(judged).get(credential);
    },
    now(name) {
      const [profile, credential] = name.split('/') as [string, string];
      const judged = source.cluster(profile);
      return judged?.state === 'valid' ? credentialsOf(judged).get(credential) : undefined;
    },
  };
}

interface Source {
  readonly secret?: Projected;
  readonly configMap?: Projected;
}
interface Projected {
  readonly name: string;
  readonly items: readonly { readonly key: string; readonly path: string }[];
}

function filesIn({ volume }: SidecarMount): readonly VolumeFile[] {
  const { sources } = (volume as { readonly projected: { readonly sources: readonly Source[] } }).projected;
  const of = (kind: VolumeFile['kind'], projected: Projected | undefined): VolumeFile[] =>
    projected === undefined
      ? []
      : projected.items.map(({ key, path }) => ({ kind, name: projected.name, key, path }));
  return sources.flatMap(({ secret, configMap }) => [...of('secret', secret), ...of('configMap', configMap)]);
}
