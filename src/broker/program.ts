import { startAdminServer } from '../admin/admin-server.ts';
import { metricsEndpoint } from '../admin/metrics-endpoint.ts';
import { type MissingPart, probes } from '../admin/probes.ts';
import { registerProcessMetrics } from '../admin/process-metrics.ts';
import { type Command, type CommandContext, explainingConflicts } from '../config/command.ts';
import { readSettings, unknownVariables } from '../config/settings.ts';
import { SidecarError } from '../platform/errors.ts';
import { createLogger } from '../platform/log/logger.ts';
import { formatAddress } from '../platform/net/address.ts';
import { ConfigurationError, type Problem } from '../platform/problems.ts';
import { whenAborted } from '../platform/process/shutdown.ts';
import { keepHeapSmall } from '../platform/process/small-heap.ts';
import { Registry } from '../platform/prometheus.ts';
import { systemClock } from '../platform/time/clock.ts';
import { type CertificateFiles, followCertificateFiles } from '../platform/tls/certificate-files.ts';
import { certificateMissing } from '../platform/tls/serving-certificate.ts';
import { type BrokerListener, DEFAULT_LIMITS, startBrokerListener } from './broker-listener.ts';
import { createBrokerMetrics } from './metrics.ts';
import { BROKER_SETTINGS, type BrokerConfig, readBrokerConfig } from './settings.ts';

/** How often files are read even without a notification. */
const POLL_MS = 30_000;

export const broker: Command = {
  summary: "Run the broker: one place that holds client secrets and asks for tokens, for many pods' sidecars",
  settings: BROKER_SETTINGS,
  examples: [
    [
      'token-sidecar broker --tls-cert-file tls.crt --tls-key-file tls.key',
      "in a pod whose service account may review tokens and read ClusterTokenProfiles and its namespace's Secrets",
    ],
  ],
  async run(context) {
    const { given, positionals } = readSettings(BROKER_SETTINGS, context.args, context.env);
    if (positionals.length > 0) {
      throw new SidecarError('usage', `broker takes no operand, not ${positionals.join(' ')}`);
    }
    const problems: Problem[] = unknownVariables(BROKER_SETTINGS, context.env);
    const config = readBrokerConfig(given, problems);
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
  config: BrokerConfig,
  certificateFiles: CertificateFiles,
  { logOutput, shutdown, clock = systemClock }: CommandContext,
): Promise<number> {
  const log = createLogger(config.logLevel, logOutput);
  const registry = new Registry();
  const adminMetrics = registerProcessMetrics(registry, logOutput.losses);
  const metrics = createBrokerMetrics(registry);
  /** In order of starting; undone in reverse. */
  const closers: (() => Promise<void> | void)[] = [];
  try {
    const certificates = await followCertificateFiles(certificateFiles, {
      clock,
      pollMs: POLL_MS,
      metrics,
      log,
    });
    closers.push(certificates.close);
    const { connectBroker } = await import('./cluster.ts');
    const cluster = await connectBroker(config, { registry, metrics, clock, random: Math.random, log });
    closers.push(cluster.close);
    const listener: BrokerListener = await startBrokerListener({
      listen: config.listen,
      certificates,
      endpoint: cluster.endpoint,
      limits: DEFAULT_LIMITS,
      metrics,
      clock,
      log,
    });
    closers.push(() => listener.drain(config.drainDelayMs, config.drainTimeoutMs));
    metrics.observe({
      ready: () => !shutdown.signal.aborted && missing().length === 0,
      requestsInFlight: () => listener.inFlight,
      openCredentials: () => cluster.openCredentials(),
    });

    function missing(): MissingPart[] {
      const detail = certificateMissing(certificates.current(), clock.now().wallMs);
      const certificate = detail === undefined ? [] : [{ part: 'certificate', name: 'serving', detail }];
      return [...certificate, ...cluster.missing()];
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
    log.info({ ...addresses, audience: config.audience }, 'listening');
    keepHeapSmall();
    await whenAborted(shutdown.signal);
    log.info({ drainDelayMs: config.drainDelayMs, drainTimeoutMs: config.drainTimeoutMs }, 'draining');
  } finally {
    for (const close of closers.reverse()) await close();
  }
  log.info('stopped');
  return 0;
}
