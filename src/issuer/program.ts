import { startAdminServer } from '../admin/admin-server.ts';
import { metricsEndpoint } from '../admin/metrics-endpoint.ts';
import { registerProcessMetrics } from '../admin/process-metrics.ts';
import { type Command, type CommandContext, explainingConflicts, namedAddresses } from '../config/command.ts';
import { readSettings, unknownVariables } from '../config/settings.ts';
import { SidecarError } from '../platform/errors.ts';
import { createLogger } from '../platform/log/logger.ts';
import { formatAddress, reachableAddress } from '../platform/net/address.ts';
import { ConfigurationError, type Problem } from '../platform/problems.ts';
import { whenAborted } from '../platform/process/shutdown.ts';
import { Registry } from '../platform/prometheus.ts';
import { systemClock } from '../platform/time/clock.ts';
import { issuerAdminEndpoints } from './admin.ts';
import { type LiveClients, readClientsDirectory, readClientsFile, watchClients } from './client-sources.ts';
import { startIssuer } from './issuer.ts';
import {
  createKeyRing,
  generateSigningKey,
  type LiveSigningKey,
  openPublishedKeys,
  watchSigningKey,
} from './keys.ts';
import { createIssuerMetrics } from './metrics.ts';
import { hashSecret } from './secret-hashing.ts';
import { ISSUER_SETTINGS, type IssuerConfig, readIssuerConfig } from './settings.ts';

/** How often files are read even without a notification. */
const POLL_MS = 30_000;

export const issuer: Command = {
  summary: 'Run the Token Issuance Service, or hash a client secret for it',
  operands: '[hash < SECRET]',
  operandWords: ['hash'],
  settings: ISSUER_SETTINGS,
  examples: [
    ['token-sidecar issuer --clients-file clients.yaml', 'with the clients of a file'],
    ['printf %s "$SECRET" | token-sidecar issuer hash', 'a hash to put in place of a secret'],
  ],
  async run(context) {
    const { given, positionals } = readSettings(ISSUER_SETTINGS, context.args, context.env);
    const [operand, ...others] = positionals;
    if (operand === undefined) {
      const problems: Problem[] = unknownVariables(ISSUER_SETTINGS, context.env);
      const config = readIssuerConfig(given, problems);
      return await explainingConflicts(() => serve(config, problems, context), namedAddresses(given, config));
    }
    // It may be a secret.
    if (operand !== 'hash') throw new SidecarError('usage', 'issuer takes no operand but hash');
    if (others.length > 0)
      throw new SidecarError('usage', 'issuer hash reads the secret from standard input');
    return await printSecretHash(context);
  },
};

/** @throws {ConfigurationError} with `problems` and those of the files, before anything listens. */
async function serve(
  config: IssuerConfig,
  problems: readonly Problem[],
  { logOutput, shutdown, clock = systemClock }: CommandContext,
): Promise<number> {
  const log = createLogger(config.logLevel, logOutput);
  const registry = new Registry();
  const adminMetrics = registerProcessMetrics(registry, logOutput.losses);
  const metrics = createIssuerMetrics(registry);
  const live = { clock, pollMs: POLL_MS, metrics, log };

  const [clients, key] = await allOrProblems(problems, openClients(config, live), openKeys(config, live));
  const closers: (() => Promise<void> | void)[] = [clients.close, key.close];
  try {
    const service = await startIssuer({
      listen: config.listen,
      ...(config.authUrl === undefined ? {} : { authUrl: config.authUrl }),
      realm: config.realm,
      clients: clients.store,
      keys: key.keys,
      tokenLifetimeSeconds: config.tokenLifetimeSeconds,
      demandsNonces: config.demandsNonces,
      metrics,
      clock,
      log,
    });
    closers.unshift(() => service.close(config.drainTimeoutMs));
    let adminUrl = '';
    const admin = await startAdminServer(
      config.adminListen,
      {
        ...issuerAdminEndpoints(
          service,
          () => shutdown.signal.aborted,
          () => adminUrl,
        ),
        '/metrics': metricsEndpoint(registry),
      },
      log,
      { metrics: adminMetrics },
    );
    closers.push(admin.close);
    // No request can have come in this turn.
    adminUrl = config.adminUrl?.href ?? `http://${formatAddress(reachableAddress(admin.address))}`;
    log.info(
      {
        issuer: service.issuer,
        tokenUrl: service.tokenUrl,
        listen: formatAddress(service.address),
        admin: formatAddress(admin.address),
        kid: key.keys.current().keyId,
        alg: key.keys.current().algorithm,
      },
      'ready',
    );
    await whenAborted(shutdown.signal);
    log.info({ drainTimeoutMs: config.drainTimeoutMs }, 'draining');
    const lost = key.keys.lostAtEnd().map(({ keyId }) => keyId);
    if (lost.length > 0) {
      log.warn(
        { kids: lost },
        'keys with living tokens end with this process: publish them by --published-keys-dir',
      );
    }
  } finally {
    for (const close of closers) await close();
  }
  log.info('stopped');
  return 0;
}

async function openClients(
  { clients }: IssuerConfig,
  live: Parameters<typeof watchClients>[1],
): Promise<LiveClients> {
  // The settings have already reported it.
  if (clients === undefined) throw new ConfigurationError([]);
  const read = clients.kind === 'file' ? readClientsFile : readClientsDirectory;
  return await watchClients(() => read(clients.path, clients.key), live);
}

async function openKeys(
  config: IssuerConfig,
  live: Parameters<typeof watchSigningKey>[1],
): Promise<LiveSigningKey> {
  if (config.publishedKeysDirectory === undefined) return await openSigningKey(config, live);
  const [signing, published] = await allOrProblems(
    [],
    openSigningKey(config, live),
    openPublishedKeys(config.publishedKeysDirectory, live),
  );
  published.showIn(signing.keys);
  return {
    keys: signing.keys,
    close() {
      signing.close();
      published.close();
    },
  };
}

async function openSigningKey(
  { signingAlgorithm, signingKeyFile }: IssuerConfig,
  live: Parameters<typeof watchSigningKey>[1],
): Promise<LiveSigningKey> {
  if (signingKeyFile !== undefined) {
    return await watchSigningKey({ ...signingKeyFile, algorithm: signingAlgorithm }, live);
  }
  const key = await generateSigningKey(signingAlgorithm);
  live.log.warn(
    { kid: key.keyId, alg: key.algorithm },
    'signing with a key made at start: its tokens cannot be verified after a restart or at another replica',
  );
  return { keys: createKeyRing(key, live.clock), close: () => undefined };
}

/**
 * If one fails, closes the other.
 * @throws {ConfigurationError} with the problems of all.
 */
async function allOrProblems<A extends { close(): void }, B extends { close(): void }>(
  problems: readonly Problem[],
  a: Promise<A>,
  b: Promise<B>,
): Promise<[A, B]> {
  const settled = await Promise.allSettled([a, b]);
  const [first, second] = settled;
  if (problems.length === 0 && first.status === 'fulfilled' && second.status === 'fulfilled') {
    return [first.value, second.value];
  }
  for (const outcome of settled) if (outcome.status === 'fulfilled') outcome.value.close();
  const errors = settled.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []));
  const unforeseen = errors.find((error) => !(error instanceof ConfigurationError));
  if (unforeseen !== undefined) throw unforeseen;
  throw new ConfigurationError([...problems, ...errors.flatMap((error) => error.problems)]);
}

/** Longer input was piped in by mistake. */
const MAX_SECRET_BYTES = 64 * 1024;

/**
 * Takes the secret from standard input: a command line shows in the process list and the shell's history.
 * @throws {SidecarError} `usage` if there is no secret, or it is no UTF-8 text.
 */
async function printSecretHash({ stdin, stdout }: Pick<CommandContext, 'stdin' | 'stdout'>): Promise<number> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stdin) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > MAX_SECRET_BYTES) {
      throw new SidecarError(
        'usage',
        `the secret on standard input is larger than ${MAX_SECRET_BYTES} bytes`,
      );
    }
  }
  const secret = decode(Buffer.concat(chunks)).replace(/\r?\n$/, '');
  if (secret === '') throw new SidecarError('usage', 'there is no secret on standard input');
  stdout.write(`${await hashSecret(secret)}\n`);
  return 0;
}

function decode(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw new SidecarError('usage', 'the secret on standard input is not UTF-8 text', { cause });
  }
}
