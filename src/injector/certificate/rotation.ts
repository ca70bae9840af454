/**
 * When the certificate takes its next step. A rotation never shows an API server a certificate whose CA it may not know
 * yet, nor forgets a CA whose certificate a replica may still show:
 *
 * 1. `stage`: a successor with its own CA is stored beside the certificate in use, and the webhooks get both CAs;
 * 2. `promote`: some time after the webhooks have both, the successor takes over;
 * 3. `prune`: the old CA is removed once it has expired, and no replica can show its certificate any more.
 */

import { X509Certificate } from 'node:crypto';
import { outsideValidity } from '../../platform/tls/serving-certificate.ts';
import { livingAuthorities, type StoredCertificates } from './stored-certificates.ts';

export interface RotationPolicy {
  /** Life of each certificate and its CA. */
  readonly lifetimeMs: number;
  /** How long API servers may take to notice a changed webhook. */
  readonly propagationMs: number;
  /** DNS names that the certificate must have. */
  readonly hosts: readonly string[];
}

type RotationStep = 'create' | 'stage' | 'promote' | 'prune' | 'wait';

interface RotationPlan {
  readonly step: RotationStep;
  /** When the next step may be due, Unix time in ms. */
  readonly nextAtMs: number;
}

/** The last third of the life is left for whatever may delay the rotation. */
const RENEW_AT = 2 / 3;

/**
 * Pure. Certificates made under a clock that was ahead are useless until their time comes; as certificates are
 * backdated, small differences between clocks do not matter.
 */
export function planRotation(
  stored: StoredCertificates | undefined,
  { lifetimeMs, propagationMs, hosts }: RotationPolicy,
  nowMs: number,
): RotationPlan {
  if (
    stored === undefined ||
    stored.authorities.length === 0 ||
    outsideValidity(stored.current, nowMs) !== undefined
  ) {
    return { step: 'create', nextAtMs: nowMs };
  }
  const { current, next, publishedAtMs, authorities } = stored;
  const renewAtMs = current.expiresAtMs - lifetimeMs * (1 - RENEW_AT);
  const isDue = stored.isRotationAsked === true || nowMs >= renewAtMs || !hasHosts(current.cert, hosts);
  if (next === undefined || outsideValidity(next, nowMs) !== undefined || !hasHosts(next.cert, hosts)) {
    if (isDue) return { step: 'stage', nextAtMs: nowMs };
  } else {
    // Not published yet: nothing to do until the webhooks have been seen to trust it.
    if (publishedAtMs === undefined) return { step: 'wait', nextAtMs: nowMs + propagationMs };
    const promoteAtMs = publishedAtMs + propagationMs;
    return nowMs >= promoteAtMs
      ? { step: 'promote', nextAtMs: nowMs }
      : { step: 'wait', nextAtMs: promoteAtMs };
  }
  if (livingAuthorities(authorities, nowMs).length < authorities.length)
    return { step: 'prune', nextAtMs: nowMs };
  return { step: 'wait', nextAtMs: renewAtMs };
}

function hasHosts(cert: string, hosts: readonly string[]): boolean {
  const certificate = new X509Certificate(cert);
  return hosts.every((host) => certificate.checkHost(host) !== undefined);
}
