/** Whatever its source offers, the last good certificate stays. */

import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { messageOf } from '../errors.ts';
import { type Logger, withoutRepeatLimit } from '../log/logger.ts';
import type { Clock } from '../time/clock.ts';
import { blocksOf } from '../x509/pem.ts';

export interface ServingCertificate {
  /** PEM, the leaf first. */
  readonly cert: string;
  /** PEM. */
  readonly key: string;
  /** Unix time. */
  readonly startsAtMs: number;
  /** Unix time. */
  readonly expiresAtMs: number;
}

export interface CertificateSource {
  current(): ServingCertificate | undefined;
  /** Returns a function that stops it. */
  onChange(listener: (certificate: ServingCertificate) => void): () => void;
  close(): Promise<void>;
}

/** The certificate or a complaint, never with the key. */
export function parseServingCertificate(cert: string, key: string): ServingCertificate | string {
  let leaf: X509Certificate;
  let others: X509Certificate[];
  try {
    leaf = new X509Certificate(cert);
    others = blocksOf(cert)
      .slice(1)
      .map((block) => new X509Certificate(block));
  } catch (error) {
    return `the certificate or its chain is no PEM certificate: ${messageOf(error)}`;
  }
  try {
    if (!leaf.checkPrivateKey(createPrivateKey(key))) return 'the private key is not that of the certificate';
  } catch {
    return 'the private key is no PEM key, or is encrypted';
  }
  if (others.length > 0 && ![leaf, ...others].some((issuer) => isIssuedBy(leaf, issuer))) {
    return 'the chain is that of another certificate: nothing in it issued the first one';
  }
  try {
    // TLS rejects more, such as a key that is too short.
    createSecureContext({ cert, key });
  } catch (error) {
    return `TLS does not take it: ${messageOf(error)}`;
  }
  return { cert, key, startsAtMs: leaf.validFromDate.getTime(), expiresAtMs: leaf.validToDate.getTime() };
}

export function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}

/** Undefined if it is valid now. */
export function outsideValidity(
  { startsAtMs, expiresAtMs }: ServingCertificate,
  nowMs: number,
): string | undefined {
  if (nowMs < startsAtMs) return `it is not valid before ${new Date(startsAtMs).toISOString()}`;
  return nowMs < expiresAtMs ? undefined : `it ended ${new Date(expiresAtMs).toISOString()}`;
}

/** Undefined if it can be used. */
export function certificateMissing(
  certificate: ServingCertificate | undefined,
  nowMs: number,
): string | undefined {
  return certificate === undefined ? 'there is none yet' : outsideValidity(certificate, nowMs);
}

export interface CertificateMetrics {
  /** @param expiresAtMs Unix time. */
  certificateLoaded(expiresAtMs: number): void;
  certificateRefused(): void;
}

export interface ServedCertificateOptions {
  readonly clock: Clock;
  readonly metrics: CertificateMetrics;
  readonly log: Logger;
}

interface CertificateHolder extends Omit<CertificateSource, 'close'> {
  /** Only a certificate that is valid now replaces a valid one. One that is not valid yet waits. */
  offer(certificate: ServingCertificate): void;
  refuse(why: string): void;
  close(): void;
}

/** Timers follow the monotonic clock, validity the wall clock. */
const MAX_SLEEP_MS = 15_000;

/** @param first served whatever its time. */
export function createServedCertificate(
  { clock, metrics, log }: ServedCertificateOptions,
  first?: ServingCertificate,
): CertificateHolder {
  const listeners = new Set<(certificate: ServingCertificate) => void>();
  let current = first;
  if (first !== undefined) metrics.certificateLoaded(first.expiresAtMs);
  let cancelWait: (() => void) | undefined;
  let isRefused = false;

  function offer(certificate: ServingCertificate): void {
    cancelWait?.();
    const isSame = certificate.cert === current?.cert && certificate.key === current.key;
    // After a refusal, the same one is news.
    if (isSame && !isRefused) return;
    isRefused = false;
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

  function tell(listener: (certificate: ServingCertificate) => void, certificate: ServingCertificate): void {
    try {
      listener(certificate);
    } catch (error) {
      metrics.certificateRefused();
      log.error({ err: error }, 'certificate not taken over');
    }
  }

  function refuse(why: string): void {
    isRefused = true;
    metrics.certificateRefused();
    withoutRepeatLimit(log).error({ problem: why }, 'certificate not reloaded, the last good one stays');
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
