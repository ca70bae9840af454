/** Wires the gateway's frontend. Loaded only by the command `gateway`. */

import type { MissingPart } from '../admin/probes.ts';
import type { ServiceAccountVerifier } from '../callers/service-account-verifier.ts';
import type { GatewayConfig } from '../config/config.ts';
import { followCertificateFiles, followClientAuthorities } from '../platform/tls/certificate-files.ts';
import { certificateMissing } from '../platform/tls/serving-certificate.ts';
import type { Frontend, FrontendDependencies, OpenFrontend } from '../sidecar/sidecar.ts';
import { createGateway, type Gateway } from './gateway.ts';
import { createGatewayMetrics } from './metrics.ts';

/** How often files are read even without a notification. */
const POLL_MS = 30_000;

interface FrontendOptions {
  /** A path; the pod's service account by default. */
  readonly kubeconfig?: string | undefined;
  /** Numbers in [0, 1) for jitter. */
  readonly random?: () => number;
}

export function gatewayFrontend(config: GatewayConfig, options: FrontendOptions = {}): Frontend {
  return { listen: config.listen, open: (surroundings) => open(config, options, surroundings) };
}

/** What is open so far, to be closed with the frontend or if the rest cannot be opened. */
type Closers = (() => Promise<void> | void)[];

async function open(
  config: GatewayConfig,
  options: FrontendOptions,
  surroundings: FrontendDependencies,
): Promise<OpenFrontend> {
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
  { registry, clock, log }: FrontendDependencies,
  closers: Closers,
): Promise<OpenFrontend> {
  let gateway: Gateway | undefined;
  const metrics = createGatewayMetrics(registry, () => gateway?.remembered() ?? 0);
  const watching = { clock, pollMs: POLL_MS, log };
  const certificate = await followCertificateFiles(
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
      : await followClientAuthorities(
          { caFile: clientCaFile, names: [], key: 'gateway.clientCaFile' },
          { ...watching, onReload: (result) => metrics.fileReloaded('client_ca', result) },
        );
  if (clients !== undefined) closers.push(clients.close);
  const tokens =
    serviceAccountTokens && (await openVerifier(serviceAccountTokens, options, { registry, clock, log }));
  if (tokens !== undefined) closers.push(tokens.close);
  const opened = createGateway({ certificate, clients, tokens, metrics, clock, log });
  closers.push(opened.close);
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
  { registry, clock, log }: FrontendDependencies,
): Promise<ServiceAccountVerifier> {
  // Loaded only if tokens are verified: the API client is large.
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
