/**
 * When a replica may show the certificate in the Secret, whether it came from a rotation, a backup or another's clock.
 * While the certificate in use is trusted, its successor waits until API servers have had time to trust it too.
 */

import { outsideValidity, type ServingCertificate } from '../../platform/tls/serving-certificate.ts';
import type { TrustedAuthorities } from './trusted-authorities.ts';

interface TakeoverOptions {
  readonly trusted: TrustedAuthorities;
  /** How long API servers may take to notice a changed webhook. */
  readonly propagationMs: number;
  /** Unix time in ms. */
  readonly nowMs: number;
}

/** How long to wait before it takes over, in ms; Infinity if that depends on what the webhooks will trust. */
export function takeoverDelayMs(
  current: ServingCertificate | undefined,
  offered: ServingCertificate,
  { trusted, propagationMs, nowMs }: TakeoverOptions,
): number {
  if (current?.cert === offered.cert) return 0;
  const isValid = current !== undefined && outsideValidity(current, nowMs) === undefined;
  // The API server cannot be asked. It may trust the new certificate, and certainly trusts no expired one.
  if (!trusted.isKnown()) return isValid ? Number.POSITIVE_INFINITY : 0;
  const forMs = trusted.trustedForMs(offered.cert);
  const isInUse = isValid && trusted.trustedForMs(current.cert) !== undefined;
  if (forMs === undefined) return isInUse || current === undefined ? Number.POSITIVE_INFINITY : 0;
  return isInUse ? Math.max(0, propagationMs - forMs) : 0;
}
