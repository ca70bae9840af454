import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { startAdminServer } from '../admin/admin-server.ts';
import { metricsEndpoint } from '../admin/metrics-endpoint.ts';
import { type MissingPart, probes } from '../admin/probes.ts';
import { registerProcessMetrics } from '../admin/process-metrics.ts';
import { type Command, type CommandContext, explainingConflicts } from '../config/command.ts';
import { readSettings, unknownVariables } from '../config/settings.ts';
import { SidecarError } from '../platform/errors.ts';
import { createLogger, type Logger } from '../platform/log/logger.ts';
import { formatAddress } from '../platform/net/address.ts';
import { ConfigurationError, type Problem } from '../platform/problems.ts';
import { whenAborted } from '../platform/process/shutdown.ts';
import { keepHeapSmall } from '../platform/process/small-heap.ts';
import { Registry } from '../platform/prometheus.ts';
import { type Clock, systemClock } from '../platform/time/clock.ts';
import { followCertificateFiles, followClientAuthorities } from '../platform/tls/certificate-files.ts';
import { type CertificateSource, certificateMissing } from '../platform/tls/serving-certificate.ts';
import { type ClusterContact, createMutatingWebhook, createValidatingWebhook } from './admission.ts';
import { followBroker } from './broker-of-pods.ts';
import { createInjectorMetrics, type InjectorMetrics } from './metrics.ts';
import type { Cluster } from './pod/context.ts';
import {
  type CertificateConfig,
  INJECTOR_SETTINGS,
  type InjectorConfig,
  readInjectorConfig,
} from './settings.ts';
import { createCheckWebhook } from './webhook-check.ts';
import { startWebhookListener } from './webhook-listener.ts';

/** How often files are read even without a notification. */
const POLL_MS = 30_000;

export const injector: Command = {
  summary:
    'Run the mutating admission webhook that adds the sidecar to annotated pods, or wait until the API server gets its answers',
  operands: '[wait]',
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
      // Imported separately, because the API client is slow to load.
      const { waitForInjector } = await import('./wait.ts');
      return await waitForInjector(given, context);
    }
    const problems: Problem[] = unknownVariables(INJECTOR_SETTINGS, context.env);
    const config = readInjectorConfig(given, problems);
    if (problems.length > 0 || config.certificate === undefined) throw new ConfigurationError(problems);
    const { certificate } = config;
    return await explainingConflicts(
      () => serve(config, certificate, context),
      [
        { key: given.listen?.key ?? '--listen', address: config.listen },
        { key: given['admin-listen']?.key ?? '--admin-listen', address: config.adminListen },
      ],
    );
  },
};

async function serve(
  config: InjectorConfig,
  certificateConfig: CertificateConfig,
  { logOutput, shutdown, clock = systemClock }: CommandContext,
): Promise<number> {
  const log = createLogger(config.logLevel, logOutput);
  const registry = new Registry();
  const adminMetrics = registerProcessMetrics(registry, logOutput.losses);
  const metrics = createInjectorMetrics(registry);
  /** In order of starting; undone in reverse. */
  const closers: (() => Promise<void> | void)[] = [];
  try {
    const broker = config.broker && (await followBroker(config.broker, { clock, pollMs: POLL_MS, log }));
    if (broker !== undefined) closers.push(broker.close);
    const defaults = { ...config.defaults, ...(broker === undefined ? {} : { broker: broker.ofPods }) };
    const kubernetes = await connect({ ...config, defaults }, metrics, clock, log);
    closers.push(kubernetes.close);
    const certificates = await kubernetes.openCertificate(certificateConfig);
    closers.push(certificates.close);
    const clients =
      config.clients && (await followClientAuthorities(config.clients, { clock, pollMs: POLL_MS, log }));
    if (clients !== undefined) closers.push(clients.close);

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
    closers.push(() => listener.drain(config.drainDelayMs, config.drainTimeoutMs));

    function missing(): MissingPart[] {
      const detail = certificateMissing(certificates.current(), clock.now().wallMs);
      const certificate = detail === undefined ? [] : [{ part: 'certificate', name: 'serving', detail }];
      return [...certificate, ...kubernetes.missing()];
    }
    const admin = await startAdminServer(
      config.adminListen,
      {
        ...probes({
          draining: () => shutdown.signal.aborted,
          started: () => missing().length === 0,
          missing,
        }),
        '/metrics': metricsEndpoint(registry),
      },
      log,
      { metrics: adminMetrics },
    );
    // Probes are answered until the very end of the drain.
    closers.splice(-1, 0, admin.close);
    const addresses = { listen: formatAddress(listener.address), admin: formatAddress(admin.address) };
    log.info(
      { ...addresses, certificate: certificateConfig.source, api: config.kubernetes !== undefined },
      'listening',
    );
    keepHeapSmall();
    await whenAborted(shutdown.signal);
    log.info({ drainDelayMs: config.drainDelayMs, drainTimeoutMs: config.drainTimeoutMs }, 'draining');
  } finally {
    for (const close of closers.reverse()) await close();
  }
  log.info('stopped');
  return 0;
}

/** The parts that depend on whether the Kubernetes API is used. */
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
    // Without the API the settings allow no other source.
    if (config.source !== 'files')
      throw new SidecarError('internal', 'a certificate cannot be kept without the API');
    return followCertificateFiles(config, { clock, pollMs: POLL_MS, metrics, log });
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
  // A native sidecar would hang a pod of an older cluster: nothing is injected before the version is known.
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
