import {
  type Dependencies,
  missingCertificate,
  type Started,
  serveUntilShutdown,
} from '../admin/serve-until-shutdown.ts';
import { type Command, explainingConflicts, namedAddresses } from '../config/command.ts';
import { readSettings, unknownVariables } from '../config/settings.ts';
import { SidecarError } from '../platform/errors.ts';
import { ConfigurationError, type Problem } from '../platform/problems.ts';
import { type CertificateFiles, watchCertificateFiles } from '../platform/tls/certificate-files.ts';
import { DEFAULT_LIMITS, startBrokerListener } from './broker-listener.ts';
import { createBrokerMetrics } from './metrics.ts';
import { BROKER_SETTINGS, type BrokerConfig, readBrokerConfig } from './settings.ts';

/** How often files are read without a notification. */
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
      () => serveUntilShutdown(config, context, (surroundings) => start(config, certificate, surroundings)),
      namedAddresses(given, config),
    );
  },
};

async function start(
  config: BrokerConfig,
  certificateFiles: CertificateFiles,
  { clock, log, registry, isEnding, closeAtEnd }: Dependencies,
): Promise<Started> {
  const metrics = createBrokerMetrics(registry);
  const certificates = await watchCertificateFiles(certificateFiles, {
    clock,
    pollMs: POLL_MS,
    metrics,
    log,
  });
  closeAtEnd(certificates.close);
  const { connectBroker } = await import('./cluster.ts');
  const cluster = await connectBroker(config, { registry, metrics, clock, random: Math.random, log });
  closeAtEnd(cluster.close);
  const listener = await startBrokerListener({
    listen: config.listen,
    certificates,
    endpoint: cluster.endpoint,
    limits: DEFAULT_LIMITS,
    metrics,
    clock,
    log,
  });
  const missing = () => [...missingCertificate(certificates, clock), ...cluster.missing()];
  metrics.observe({
    ready: () => !isEnding() && missing().length === 0,
    requestsInFlight: () => listener.inFlight,
    openCredentials: () => cluster.openCredentials(),
  });
  return { listener, missing, told: { audience: config.audience } };
}
