/**
 * When a replica may show the certificate that the Secret holds. However it came there, by a rotation, from a backup or
 * by another's clock: while the one in use is trusted, its successor waits until API servers have had the time to trust it too.
 */

import { outsideValidity, type ServingCertificate } from '../../certificates/serving-certificate.ts';
import type { TrustedAuthorities } from './trusted-authorities.ts';

export interface TakeoverOptions {
  readonly trusted: TrustedAuthorities;
  /** How long API servers may take to notice a changed webhook. */
  readonly propagationMs: number;
  /** Unix time in ms. */
  readonly nowMs: number;
}

/** How long to wait before it takes over, in ms; Infinity when that depends on what the webhooks will trust. */
export function takeoverDelayMs(
  current: ServingCertificate | undefined,
  offered: ServingCertificate,
  { trusted, propagationMs, nowMs }: TakeoverOptions,
): number {
  if (current?.cert === offered.cert) return 0;
  const isValid = current !== undefined && outsideValidity(current, nowMs) === undefined;
  // The API server cannot be asked: it may trust the new one, and surely trusts no one that has ended.
  if (!trusted.isKnown()) return isValid ? Number.POSITIVE_INFINITY : 0;
  const forMs = trusted.trustedForMs(offered.cert);
  const isInUse = isValid && trusted.trustedForMs(current.cert) !== undefined;
  if (forMs === undefined) return isInUse || current === undefined ? Number.POSITIVE_INFINITY : 0;
  return isInUse ? Math.max(0, propagationMs - forMs) : 0;
}
