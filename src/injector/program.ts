import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { MissingPart } from '../admin/probes.ts';
import {
  type Dependencies,
  missingCertificate,
  type Started,
  serveUntilShutdown,
} from '../admin/serve-until-shutdown.ts';
import { type Command, explainingConflicts, namedAddresses } from '../config/command.ts';
import { readSettings, unknownVariables } from '../config/settings.ts';
import { SidecarError } from '../platform/errors.ts';
import type { Logger } from '../platform/log/logger.ts';
import { ConfigurationError, type Problem } from '../platform/problems.ts';
import type { Clock } from '../platform/time/clock.ts';
import { watchCertificateFiles, watchClientAuthorities } from '../platform/tls/certificate-files.ts';
import type { CertificateSource } from '../platform/tls/serving-certificate.ts';
import { type ClusterContact, createMutatingWebhook, createValidatingWebhook } from './admission.ts';
import { watchBroker } from './broker-of-pods.ts';
import { createInjectorMetrics, type InjectorMetrics } from './metrics.ts';
import type { Cluster } from './pod/cluster.ts';
import { INJECTOR_SETTINGS, type InjectorConfig, readInjectorConfig } from './settings.ts';
import { createCheckWebhook } from './webhook-check.ts';
import { startWebhookListener } from './webhook-listener.ts';

type CertificateConfig = NonNullable<InjectorConfig['certificate']>;

/** How often files are read without a notification. */
const POLL_MS = 30_000;

export const injector: Command = {
  summary:
    'Run the mutating admission webhook that adds the sidecar to annotated pods, or wait until the API server gets its answers',
  operands: '[wait]',
  operandWords: ['wait'],
  settings: INJECTOR_SETTINGS,
  examples: [
    [
      'token-sidecar injector --tls-cert-file tls.crt --tls-key-file tls.key',
      'with a certificate from elsewhere',
    ],
    ['token-sidecar injector wait', 'until the API server gets its answers'],
  ],
  async run(context) {
    const { given, positionals } = readSettings(INJECTOR_SETTINGS, context.args, context.env);
    if (positionals.length > 0) {
      if (positionals.join(' ') !== 'wait') {
        throw new SidecarError('usage', `injector takes no operand but wait, not ${positionals.join(' ')}`);
      }
      // The API client is slow to load.
      const { waitForInjector } = await import('./wait.ts');
      return await waitForInjector(given, context);
    }
    const problems: Problem[] = unknownVariables(INJECTOR_SETTINGS, context.env);
    const config = readInjectorConfig(given, problems);
    if (problems.length > 0 || config.certificate === undefined) throw new ConfigurationError(problems);
    const { certificate } = config;
    return await explainingConflicts(
      () => serveUntilShutdown(config, context, (surroundings) => start(config, certificate, surroundings)),
      namedAddresses(given, config),
    );
  },
};

async function start(
  config: InjectorConfig,
  certificateConfig: CertificateConfig,
  { clock, log, registry, closeAtEnd }: Dependencies,
): Promise<Started> {
  const metrics = createInjectorMetrics(registry);
  const files = { clock, pollMs: POLL_MS, log };
  const broker = config.broker && (await watchBroker(config.broker, files));
  if (broker !== undefined) closeAtEnd(broker.close);
  const defaults = { ...config.defaults, ...(broker === undefined ? {} : { broker: broker.ofPods }) };
  const kubernetes = await connect({ ...config, defaults }, metrics, clock, log);
  closeAtEnd(kubernetes.close);
  const certificates = await kubernetes.openCertificate(certificateConfig);
  closeAtEnd(certificates.close);
  const clients = config.clients && (await watchClientAuthorities(config.clients, files));
  if (clients !== undefined) closeAtEnd(clients.close);

  const admission = {
    defaults,
    cluster: kubernetes.cluster,
    contact: kubernetes.contact,
    metrics,
    clock,
    log,
  };
  const listener = await startWebhookListener({
    listen: config.listen,
    certificates,
    ...(clients === undefined ? {} : { clients }),
    webhooks: {
      '/mutate': createMutatingWebhook(admission),
      '/validate': createValidatingWebhook(admission),
      '/check': createCheckWebhook(),
    },
    metrics,
    clock,
    log,
  });
  return {
    listener,
    missing: () => [...missingCertificate(certificates, clock), ...kubernetes.missing()],
    told: { certificate: certificateConfig.source, api: config.kubernetes !== undefined },
  };
}

interface ClusterSide {
  readonly cluster: () => Cluster;
  readonly contact: ClusterContact;
  missing(): MissingPart[];
  openCertificate(config: CertificateConfig): Promise<CertificateSource>;
  close(): Promise<void>;
}

async function connect(
  { kubernetes, defaults }: InjectorConfig,
  metrics: InjectorMetrics,
  clock: Clock,
  log: Logger,
): Promise<ClusterSide> {
  const openFiles = (config: CertificateConfig): Promise<CertificateSource> => {
    if (config.source !== 'files')
      throw new SidecarError('internal', 'a certificate cannot be kept without the API');
    return watchCertificateFiles(config, { clock, pollMs: POLL_MS, metrics, log });
  };
  if (kubernetes === undefined) {
    return {
      cluster: () => ({}),
      contact: {},
      missing: () => [],
      openCertificate: openFiles,
      close: async () => undefined,
    };
  }
  const { connectCluster } = await import('./cluster-program.ts');
  const side = await connectCluster({
    ...kubernetes,
    defaults,
    clock,
    metrics,
    log,
    random: Math.random,
    identity: `${hostname()}_${randomUUID()}`,
  });
  // A native sidecar would hang pods of older clusters.
  const needsVersion = defaults.nativeSidecar === undefined;
  return {
    ...side,
    missing: () => [
      ...(needsVersion && side.cluster().version === undefined
        ? [{ part: 'cluster', name: 'version', detail: 'the API server has not been reached yet' }]
        : []),
      ...(side.profilesRead()
        ? []
        : [{ part: 'profiles', name: 'all', detail: 'the API server has not told of them yet' }]),
    ],
    openCertificate: (config) =>
      config.source === 'files' ? openFiles(config) : side.keepCertificate(config),
  };
}
