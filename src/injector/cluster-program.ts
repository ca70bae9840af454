/** Loaded only if the Kubernetes API is used: its client takes some 30 MB. */

import { SidecarError } from '../platform/errors.ts';
import type { KubernetesApi } from '../platform/kubernetes/api.ts';
import { connectKubernetes } from '../platform/kubernetes/client.ts';
import type { Logger } from '../platform/log/logger.ts';
import type { BackoffOptions } from '../platform/time/async.ts';
import type { CertificateSource } from '../platform/tls/serving-certificate.ts';
import type { ClusterContact } from './admission.ts';
import { manageCertificate } from './certificate/self-managed-certificate.ts';
import { watchClusterVersion } from './cluster/cluster-version.ts';
import { createEventRecorder, createOwnerEvents } from './cluster/owner-events.ts';
import { createSecretExistence } from './cluster/secret-existence.ts';
import type { InjectionDefaults } from './injection-defaults.ts';
import type { InjectorMetrics } from './metrics.ts';
import type { Cluster } from './pod/cluster.ts';
import { inject } from './pod/inject.ts';
import type { Pod } from './pod/pod.ts';
import { startProfileReports } from './profiles/profile-reports.ts';
import { watchProfiles } from './profiles/profile-store.ts';
import type { InjectorConfig } from './settings.ts';
import { createReplacements } from './watched-pods/healing.ts';
import { createServedPods, startPodController, webhookAsOwner } from './watched-pods/pod-controller.ts';

type SelfManagedConfig = Extract<InjectorConfig['certificate'], { readonly source: 'self-managed' }>;

interface ClusterOptions extends NonNullable<InjectorConfig['kubernetes']>, BackoffOptions {
  readonly identity: string;
  readonly defaults: InjectionDefaults;
  readonly metrics: InjectorMetrics;
  readonly log: Logger;
}

interface ConnectedCluster {
  readonly cluster: () => Cluster;
  profilesRead(): boolean;
  readonly contact: ClusterContact;
  keepCertificate(config: SelfManagedConfig): Promise<CertificateSource>;
  close(): Promise<void>;
}

/** @throws {SidecarError} `configuration` if there is no API server. */
export async function connectCluster(options: ClusterOptions): Promise<ConnectedCluster> {
  const { clock, random, metrics, log, identity, defaults, checkSecrets, events } = options;
  const api = connectKubernetes(options.kubeconfig, clock);
  const version = watchClusterVersion(api, options);
  const secrets = checkSecrets ? { secretExists: createSecretExistence(api, options) } : {};
  const profiles = options.profiles && (await followProfiles(api, options.profiles.leaseName));
  const cluster = (): Cluster =>
    profiles === undefined
      ? version.current()
      : { ...version.current(), profiles: profiles.profiles, namespaceLabels: profiles.store.labels };
  const verdictOf = (pod: Pod, namespace: string) => inject(pod, { name: namespace }, defaults, cluster());
  const tell = createEventRecorder(api, clock);

  function ownNamespace(): string {
    const namespace = options.namespace ?? api.namespace;
    if (namespace !== undefined) return namespace;
    throw new SidecarError('configuration', '--namespace: expected the namespace that the injector runs in');
  }

  /** The rules of the configuration file are slow to load. */
  async function followProfiles(client: KubernetesApi, leaseName: string) {
    const namespace = ownNamespace();
    const { judge, profilesOf } = await import('./profile-rules.ts');
    const store = watchProfiles(client, { judge, clock, random, log });
    const reports = startProfileReports(client, {
      store,
      namespace,
      leaseName,
      identity,
      clock,
      random,
      log,
    });
    return { profiles: profilesOf(store), store, reports };
  }

  const { pods } = options;
  const configuration = pods?.configuration;
  const podController =
    pods &&
    startPodController(api, {
      namespace: ownNamespace(),
      ...pods,
      identity,
      ...(configuration === undefined ? {} : { owner: () => webhookAsOwner(api, configuration) }),
      served: createServedPods(api, { configuration, clock, log }),
      replacements: createReplacements(api, {
        namespace: ownNamespace(),
        verdictOf: (pod, namespace) => inject(pod, namespace, defaults, cluster()),
      }),
      ...(events ? { tell } : {}),
      clock,
      random,
      metrics,
      log,
    });
  return {
    cluster,
    profilesRead: () => profiles === undefined || profiles.store.settled(),
    contact: {
      ...secrets,
      ...(events ? { lookAtOwner: createOwnerEvents(api, { clock, log, tell, verdictOf, ...secrets }) } : {}),
    },
    async keepCertificate(config) {
      const namespace = ownNamespace();
      const { issueCertificate } = await import('./certificate/certificate-authority.ts');
      const { secretName, serviceName, mutatingConfiguration, validatingConfiguration } = config;
      const host = `${serviceName}.${namespace}.svc`;
      return manageCertificate(api, {
        namespace,
        secretName,
        webhooks: [
          { kind: 'mutating', name: mutatingConfiguration },
          ...(validatingConfiguration === undefined
            ? []
            : [{ kind: 'validating', name: validatingConfiguration } as const]),
        ],
        policy: {
          lifetimeMs: config.lifetimeMs,
          propagationMs: config.propagationMs,
          hosts: [host, `${host}.cluster.local`],
        },
        identity,
        issue: issueCertificate,
        clock,
        random,
        metrics,
        log,
      });
    },
    async close() {
      version.close();
      profiles?.store.close();
      await profiles?.reports.close();
      await podController?.close();
    },
  };
}
