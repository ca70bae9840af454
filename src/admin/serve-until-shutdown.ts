import type { CommandContext } from '../config/command.ts';
import { createLogger, type Logger, type LogLevel } from '../platform/log/logger.ts';
import { formatAddress, type ListenAddress } from '../platform/net/address.ts';
import { whenAborted } from '../platform/process/shutdown.ts';
import { tuneHeap } from '../platform/process/small-heap.ts';
import { Registry } from '../platform/prometheus.ts';
import { type Clock, systemClock } from '../platform/time/clock.ts';
import { type CertificateSource, certificateMissing } from '../platform/tls/serving-certificate.ts';
import { startAdminServer } from './admin-server.ts';
import { metricsEndpoint } from './metrics-endpoint.ts';
import { type MissingPart, probes } from './probes.ts';
import { registerProcessMetrics } from './process-metrics.ts';

interface ServedConfig {
  readonly adminListen: ListenAddress;
  readonly drainDelayMs: number;
  readonly drainTimeoutMs: number;
  readonly logLevel: LogLevel;
}

export interface Dependencies {
  readonly clock: Clock;
  readonly log: Logger;
  readonly registry: Registry;
  readonly isEnding: () => boolean;
  /** Called in reverse order, after the listener's drain. */
  readonly closeAtEnd: (close: () => Promise<void> | void) => void;
}

export interface Started {
  readonly listener: {
    readonly address: ListenAddress;
    drain(delayMs: number, timeoutMs: number): Promise<void>;
  };
  readonly missing: () => readonly MissingPart[];
  /** For the log line that says where it listens. */
  readonly told: Readonly<Record<string, unknown>>;
}

/**
 * @param start what it has started is ended even if it throws.
 * @returns the exit status.
 */
export async function serveUntilShutdown(
  { adminListen, drainDelayMs, drainTimeoutMs, logLevel }: ServedConfig,
  { logOutput, shutdown, clock = systemClock }: CommandContext,
  start: (surroundings: Dependencies) => Promise<Started>,
): Promise<number> {
  const log = createLogger(logLevel, logOutput);
  const registry = new Registry();
  const metrics = registerProcessMetrics(registry, logOutput.losses);
  const isEnding = (): boolean => shutdown.signal.aborted;
  const closers: (() => Promise<void> | void)[] = [];
  const closeAtEnd: Dependencies['closeAtEnd'] = (close) => closers.push(close);
  try {
    const { listener, missing, told } = await start({ clock, log, registry, isEnding, closeAtEnd });
    closers.push(() => listener.drain(drainDelayMs, drainTimeoutMs));
    const started = (): boolean => missing().length === 0;
    const admin = await startAdminServer(
      adminListen,
      { ...probes({ draining: isEnding, started, missing }), '/metrics': metricsEndpoint(registry) },
      log,
      { metrics },
    );
    // Probes are answered until the end of the drain.
    closers.splice(-1, 0, admin.close);
    const addresses = { listen: formatAddress(listener.address), admin: formatAddress(admin.address) };
    log.info({ ...addresses, ...told }, 'listening');
    tuneHeap();
    await whenAborted(shutdown.signal);
    log.info({ drainDelayMs, drainTimeoutMs }, 'draining');
  } finally {
    for (const close of closers.reverse()) await close();
  }
  log.info('stopped');
  return 0;
}

export function missingCertificate(
  certificates: Pick<CertificateSource, 'current'>,
  clock: Clock,
): readonly MissingPart[] {
  const detail = certificateMissing(certificates.current(), clock.now().wallMs);
  return detail === undefined ? [] : [{ part: 'certificate', name: 'serving', detail }];
}
