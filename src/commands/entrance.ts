/** The gateway's entrance, wired. Loaded by the command `gateway` alone. */

import { followClientAuthorities } from '../certificates/client-authorities.ts';
import { followCertificateFiles } from '../certificates/file-certificate.ts';
import { certificateMissing } from '../certificates/serving-certificate.ts';
import type { GatewayConfig } from '../config/config.ts';
import { createGateway, type Gateway } from '../gateway/gateway.ts';
import { createGatewayMetrics } from '../gateway/metrics.ts';
import type { Entrance, EntranceSurroundings, OpenEntrance } from './sidecar.ts';

/** How often files are read whether or not a notification came. */
const POLL_MS = 30_000;

export function gatewayEntrance(config: GatewayConfig): Entrance {
  const { listen, leaveDelayMs } = config;
  return { listen, leaveDelayMs, open: (surroundings) => open(config, surroundings) };
}

async function open(
  { tls, clientCaFile }: GatewayConfig,
  { registry, clock, log }: EntranceSurroundings,
): Promise<OpenEntrance> {
  let gateway: Gateway | undefined;
  const metrics = createGatewayMetrics(registry, () => gateway?.remembered() ?? 0);
  const watching = { clock, pollMs: POLL_MS, log };
  const certificate = await followCertificateFiles(
    { ...tls, key: 'gateway.tls.certFile' },
    {
      ...watching,
      metrics: {
        certificateLoaded(expiresAtMs) {
          metrics.certificateLoaded(expiresAtMs);
          metrics.fileReloaded('certificate', 'loaded');
        },
        certificateRefused: () => metrics.fileReloaded('certificate', 'refused'),
      },
    },
  );
  try {
    const clients = await followClientAuthorities(
      { caFile: clientCaFile, names: [], key: 'gateway.clientCaFile' },
      { ...watching, onReload: (result) => metrics.fileReloaded('client_ca', result) },
    );
    const opened = createGateway({ certificate, clients, metrics, clock, log });
    gateway = opened;
    return {
      door: opened.door,
      use: (next) => metrics.keepCallers(new Set(next.gateway?.callers.map(({ name }) => name))),
      missing() {
        const why = certificateMissing(certificate.current(), clock.now().wallMs);
        return why === undefined ? [] : [{ part: 'listener', name: 'gateway certificate', detail: why }];
      },
      async close() {
        opened.close();
        clients.close();
        await certificate.close();
      },
    };
  } catch (error) {
    await certificate.close();
    throw error;
  }
}
