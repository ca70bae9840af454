import { constants } from 'node:crypto';
import { totalmem } from 'node:os';
import { createSecureContext, type SecureContext } from 'node:tls';
import type { MissingPart } from '../admin/probes.ts';
import type { ServiceAccountVerifier } from '../callers/service-account-verifier.ts';
import type { GatewayConfig } from '../config/config.ts';
import { FairRing } from '../platform/limits/fair-queue.ts';
import type { Logger } from '../platform/log/logger.ts';
import type { Clock } from '../platform/time/clock.ts';
import {
  type ClientVerification,
  watchCertificateFiles,
  watchClientAuthorities,
} from '../platform/tls/certificate-files.ts';
import {
  type CertificateSource,
  certificateMissing,
  type ServingCertificate,
} from '../platform/tls/serving-certificate.ts';
import { certificatesIn } from '../platform/x509/pem.ts';
import type { DownstreamContext } from '../proxy/downstream/connection.ts';
import {
  connectionsInMemory,
  memoryLimit,
  mostConnections,
  processLimits,
} from '../proxy/downstream/connection-limit.ts';
import type { Service } from '../proxy/downstream/listener.ts';
import type { Frontend } from '../sidecar/sidecar.ts';
import type { CallerGateOptions } from './authorizer.ts';
import { CallerBounds } from './caller-bounds.ts';
import { CallerConnection } from './connection.ts';
import { EndedConnections } from './ended-connections.ts';
import { HeldMemory } from './held-memory.ts';
import { type KernelBuffers, openKernelBuffers } from './kernel-buffers.ts';
import { createGatewayMetrics, type GatewayMetrics } from './metrics.ts';

/** Fewer if few connections may be open. */
const MAX_UNAUTHENTICATED = 512;

/** The total divided by this is the most for one part. */
const PART_OF_ALL = 4;

/** If neither the system nor the configuration bounds connections. */
const MANY_CONNECTIONS = 16_384;

/** No renegotiation and no resumption: the certificate would not be checked again. */
const SECURE_OPTIONS = constants.SSL_OP_NO_RENEGOTIATION | constants.SSL_OP_NO_TICKET;

interface GatewayOptions {
  readonly certificate: CertificateSource;
  /** Absent if certificates do not prove callers. */
  readonly clients: Pick<ClientVerification, 'authorities' | 'onChange'> | undefined;
  /** Absent if tokens do not prove callers. */
  readonly tokens: Pick<ServiceAccountVerifier, 'verify'> | undefined;
  readonly kernel: KernelBuffers;
  readonly metrics: GatewayMetrics;
  readonly clock: Clock;
  readonly log: Logger;
}

interface Gateway {
  readonly connectionHandler: (context: DownstreamContext) => Service;
  remembered(): number;
  close(): void;
}

function createGateway({
  certificate,
  clients,
  tokens,
  kernel,
  metrics,
  clock,
  log,
}: GatewayOptions): Gateway {
  const limitBytes = memoryLimit(process.constrainedMemory(), totalmem());
  const inMemory = connectionsInMemory(limitBytes);
  const held = new HeldMemory({
    limitBytes,
    residentBytes: () => process.memoryUsage.rss(),
    kernel,
    clock,
    log,
    onEnded: () => metrics.connection('held_too_much'),
  });
  const possible = mostConnections(inMemory, processLimits());
  let configured: () => number | undefined = () => undefined;
  const share = (): number => {
    const most = Math.min(possible, configured() ?? Number.POSITIVE_INFINITY);
    return Math.max(1, Math.floor((Number.isFinite(most) ? most : MANY_CONNECTIONS) / PART_OF_ALL));
  };
  let isCutting: () => boolean = () => false;
  const ended = new EndedConnections({ most: share, leavesRest: () => isCutting(), held, clock, log });
  const bounds = new CallerBounds(clock, share);
  const unauthenticated = new UnauthenticatedConnections(
    () => Math.min(MAX_UNAUTHENTICATED, share()),
    (address) => {
      metrics.connection('displaced');
      log.warn({ address }, 'a connection was ended: there are too many without a known caller');
    },
  );
  const authoritiesNow = (): string => clients?.authorities() ?? '';
  let trusted = fingerprintsOf(authoritiesNow());
  let secureContext = contextOf(certificate.current(), authoritiesNow());

  function renew(): void {
    const authorities = authoritiesNow();
    secureContext = contextOf(certificate.current(), authorities);
    trusted = fingerprintsOf(authorities);
  }
  const stops = [certificate.onChange(renew), clients?.onChange(renew)];

  const gates: CallerGateOptions = {
    bounds,
    metrics,
    tokens,
    trusts: (fingerprints) => fingerprints.every((fingerprint) => trusted.has(fingerprint)),
    clock,
    log,
  };
  return {
    connectionHandler(context) {
      configured = () => context.snapshot().limits.maxConnections;
      isCutting = () => context.load.phase === 'cutting';
      return {
        what: 'gateway.listen',
        clear: false,
        // Ended ones keep their descriptors for a while.
        get mostConnections() {
          return possible - ended.size;
        },
        open(accepted, onFree) {
          const known = unauthenticated.admit(accepted.remoteAddress ?? '', () => accepted.destroy());
          const connection = new CallerConnection(accepted, {
            context,
            secureContext,
            asksForCertificate: clients !== undefined,
            authorities: trusted,
            gates,
            onResult: (result) => metrics.connection(result),
            known,
            onFree,
          });
          accepted.once('close', held.add(connection));
          ended.follow(
            accepted,
            () => connection.party,
            () => connection.hasEnded,
          );
          return connection;
        },
      };
    },
    remembered: () => bounds.size,
    close() {
      held.close();
      ended.close();
      for (const stop of stops) stop?.();
    },
  };
}

/** @throws if TLS rejects them, which their sources check first. */
function contextOf(certificate: ServingCertificate | undefined, authorities: string): SecureContext {
  return createSecureContext({
    ...(certificate === undefined ? {} : { cert: certificate.cert, key: certificate.key }),
    // Public roots vouch for no caller.
    ca: authorities === '' ? [] : authorities,
    minVersion: 'TLSv1.2',
    secureOptions: SECURE_OPTIONS,
  });
}

function fingerprintsOf(pem: string): ReadonlySet<string> {
  return new Set(certificatesIn(pem).map(({ fingerprint256 }) => fingerprint256));
}

/** Without a notification. */
const POLL_MS = 30_000;

interface FrontendOptions {
  /** The pod's service account by default. */
  readonly kubeconfig?: string | undefined;
  /** Numbers in [0, 1) for jitter. */
  readonly random?: () => number;
  readonly kernel?: KernelBuffers | undefined;
}

type Dependencies = Parameters<Frontend['open']>[0];

export function gatewayFrontend(config: GatewayConfig, options: FrontendOptions = {}): Frontend {
  return { listen: config.listen, open: (surroundings) => open(config, options, surroundings) };
}

/** Closed with the frontend, or if the rest cannot be opened. */
type Closers = (() => Promise<void> | void)[];

async function open(
  config: GatewayConfig,
  options: FrontendOptions,
  surroundings: Dependencies,
): ReturnType<Frontend['open']> {
  const closers: Closers = [];
  try {
    return await openAll(config, options, surroundings, closers);
  } catch (error) {
    for (const close of closers) await close();
    throw error;
  }
}

async function openAll(
  { tls, clientCaFile, serviceAccountTokens }: GatewayConfig,
  options: FrontendOptions,
  { registry, clock, log }: Dependencies,
  closers: Closers,
): ReturnType<Frontend['open']> {
  let gateway: Gateway | undefined;
  const metrics = createGatewayMetrics(registry, () => gateway?.remembered() ?? 0);
  const watching = { clock, pollMs: POLL_MS, log };
  const certificate = await watchCertificateFiles(
    { ...tls, key: 'gateway.tls.certFile' },
    {
      ...watching,
      metrics: {
        certificateLoaded: () => metrics.fileReloaded('certificate', 'loaded'),
        certificateRefused: () => metrics.fileReloaded('certificate', 'refused'),
      },
    },
  );
  closers.push(certificate.close);
  const shown = certificate.current();
  if (shown !== undefined) metrics.certificateShown(shown);
  certificate.onChange(metrics.certificateShown);
  const clients =
    clientCaFile === undefined
      ? undefined
      : await watchClientAuthorities(
          { caFile: clientCaFile, names: [], key: 'gateway.clientCaFile' },
          { ...watching, onReload: (result) => metrics.fileReloaded('client_ca', result) },
        );
  if (clients !== undefined) closers.push(clients.close);
  const tokens =
    serviceAccountTokens && (await openVerifier(serviceAccountTokens, options, { registry, clock, log }));
  if (tokens !== undefined) closers.push(tokens.close);
  const { kernel = openKernelBuffers() } = options;
  const opened = createGateway({ certificate, clients, tokens, kernel, metrics, clock, log });
  closers.push(opened.close, kernel.close);
  gateway = opened;
  return {
    connectionHandler: opened.connectionHandler,
    use: (next) => metrics.keepCallers(new Set(next.gateway?.callers.map(({ name }) => name))),
    missing() {
      const why = certificateMissing(certificate.current(), clock.now().wallMs);
      return [
        ...(why === undefined ? [] : [missing('gateway certificate', why)]),
        ...(tokens?.ready() === false
          ? [missing('cluster keys', 'the keys that sign service account tokens have not been read yet')]
          : []),
      ];
    },
    async close() {
      for (const close of closers) await close();
    },
  };
}

function missing(name: string, detail: string): MissingPart {
  return { part: 'listener', name, detail };
}

/** @throws {SidecarError} `configuration` if there is no cluster. */
async function openVerifier(
  { audience }: NonNullable<GatewayConfig['serviceAccountTokens']>,
  { kubeconfig, random = Math.random }: FrontendOptions,
  { registry, clock, log }: Dependencies,
): Promise<ServiceAccountVerifier> {
  // Loaded only if needed: the API client is large.
  const { connectKubernetes } = await import('../platform/kubernetes/client.ts');
  const { createServiceAccountVerifier } = await import('../callers/service-account-verifier.ts');
  const { createCallerMetrics } = await import('../callers/metrics.ts');
  return createServiceAccountVerifier(connectKubernetes(kubeconfig, clock), {
    audience,
    clock,
    random,
    log,
    metrics: createCallerMetrics(registry),
  });
}

interface Unauthenticated {
  readonly address: string;
  readonly end: () => void;
}

/**
 * Connections until their first admitted request. One more than allowed displaces the oldest from the address that has
 * most, so that a flood displaces its own.
 */
export class UnauthenticatedConnections {
  readonly #most: () => number;
  readonly #onDisplaced: (address: string) => void;
  readonly #open = new FairRing<Unauthenticated>();

  /**
   * @param most called at each admission.
   * @param onDisplaced called for each connection that gives way.
   */
  constructor(most: () => number, onDisplaced: (address: string) => void) {
    this.#most = most;
    this.#onDisplaced = onDisplaced;
  }

  get size(): number {
    return this.#open.size;
  }

  /** @returns a function to report that its caller is known, or that it is gone; safe to call again. */
  admit(address: string, end: () => void): () => void {
    const most = this.#most();
    while (this.size > 0 && this.size >= most) this.#displace();
    const connection = { address, end };
    this.#open.add(address, connection);
    return () => this.#open.remove(address, connection);
  }

  #displace(): void {
    const [oldest] = this.#open.most();
    if (oldest === undefined) return;
    this.#open.remove(oldest.address, oldest);
    this.#onDisplaced(oldest.address);
    oldest.end();
  }
}
