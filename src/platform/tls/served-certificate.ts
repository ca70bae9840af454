/** The certificate in use, and the one rule for all its sources: whatever is offered, the last good one stays. */

import type { Logger } from '../log/logger.ts';
import type { Clock } from '../time/clock.ts';
import { type CertificateSource, outsideValidity, type ServingCertificate } from './serving-certificate.ts';

export interface CertificateMetrics {
  /** @param expiresAtMs Unix time. */
  certificateLoaded(expiresAtMs: number): void;
  /** A certificate was offered, but is not served. */
  certificateRefused(): void;
}

export interface ServedCertificateOptions {
  readonly clock: Clock;
  readonly metrics: CertificateMetrics;
  readonly log: Logger;
}

interface ServedCertificate extends Omit<CertificateSource, 'close'> {
  /**
   * Serves it from now on. Only a certificate that is valid now replaces a valid one: an expired one does not, and one
   * that is not valid yet waits for its time.
   */
  offer(certificate: ServingCertificate): void;
  /** Notes that the offered certificate is unusable. */
  refuse(why: string): void;
  close(): void;
}

/**
 * Timers follow the monotonic clock. A certificate's time follows the wall clock, which may be stepped, or go on while
 * the machine sleeps.
 */
const MAX_SLEEP_MS = 15_000;

/** @param first served from the start, whatever its time: readiness reports when it is of no use. */
export function createServedCertificate(
  { clock, metrics, log }: ServedCertificateOptions,
  first?: ServingCertificate,
): ServedCertificate {
  const listeners = new Set<(certificate: ServingCertificate) => void>();
  let current = first;
  if (first !== undefined) metrics.certificateLoaded(first.expiresAtMs);
  let cancelWait: (() => void) | undefined;

  function offer(certificate: ServingCertificate): void {
    cancelWait?.();
    if (certificate.cert === current?.cert && certificate.key === current.key) return;
    const nowMs = clock.now().wallMs;
    const fault = outsideValidity(certificate, nowMs);
    const inUse = current !== undefined && outsideValidity(current, nowMs) === undefined;
    if (fault !== undefined && inUse) {
      refuse(fault);
      if (nowMs < certificate.startsAtMs) waitFor(certificate);
      return;
    }
    current = certificate;
    metrics.certificateLoaded(certificate.expiresAtMs);
    log.info({ expiresAt: new Date(certificate.expiresAtMs).toISOString() }, 'certificate loaded');
    for (const listener of listeners) tell(listener, certificate);
  }

  function waitFor(certificate: ServingCertificate): void {
    const leftMs = certificate.startsAtMs - clock.now().wallMs;
    if (leftMs <= 0) offer(certificate);
    else cancelWait = clock.after(Math.min(leftMs, MAX_SLEEP_MS), () => waitFor(certificate));
  }

  /** A listener that throws keeps neither the others nor the next certificate from being announced. */
  function tell(listener: (certificate: ServingCertificate) => void, certificate: ServingCertificate): void {
    try {
      listener(certificate);
    } catch (error) {
      metrics.certificateRefused();
      log.error({ err: error }, 'certificate not taken over');
    }
  }

  function refuse(why: string): void {
    metrics.certificateRefused();
    log.error({ problem: why }, 'certificate not reloaded, the last good one stays');
  }

  return {
    current: () => current,
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    offer,
    refuse(why) {
      cancelWait?.();
      refuse(why);
    },
    close: () => cancelWait?.(),
  };
}
