export type Caller = ServiceAccountCaller | SpiffeCaller | CertificateCaller;

export interface ServiceAccountCaller {
  readonly kind: 'service_account';
  readonly namespace: string;
  readonly serviceAccount: string;
  /** Absent if bound to no pod. */
  readonly pod?: { readonly name: string; readonly uid: string };
}

/** One text per pod, or per service account without a pod. */
export function callerKey({ namespace, serviceAccount, pod }: ServiceAccountCaller): string {
  return `${namespace}/${serviceAccount}/${pod?.uid ?? ''}`;
}

/** A certificate with one such URI (X.509-SVID, §2). */
export interface SpiffeCaller {
  readonly kind: 'spiffe';
  /** `spiffe://trust-domain/path` */
  readonly uri: string;
}

export interface CertificateCaller {
  readonly kind: 'certificate';
  readonly by: 'dns_names' | 'common_name';
  /** Lower-case DNS names or, without any, the only common name. */
  readonly names: readonly string[];
}

/**
 * - `refused`: never good.
 * - `unavailable`: cannot be judged before `retryAfterMs`.
 *
 * Both have the caller if the cluster's signature is right.
 */
export type AuthenticationResult =
  | { readonly kind: 'accepted'; readonly caller: Caller }
  | { readonly kind: 'refused'; readonly reason: RejectedProof; readonly caller?: Caller }
  | { readonly kind: 'unavailable'; readonly retryAfterMs: number; readonly caller?: Caller };

/** Fit for logs and labels, and of little use to an attacker. */
export const REFUSED_PROOFS = [
  /** No signed JWT of a plausible size and algorithm. */
  'malformed',
  /** Signed by no key of this cluster. */
  'signature',
  'issuer',
  /** Other audiences than ours, or more. */
  'audience',
  'expired',
  'not_yet_valid',
  /** It belongs to no service account, or contradicts itself. */
  'claims',
  /** Its pod or service account is gone. */
  'revoked',
] as const;
export type RejectedProof = (typeof REFUSED_PROOFS)[number];
