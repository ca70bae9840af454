/** A proven caller, and the verdict on a proof. */

export type Caller = ServiceAccountCaller | SpiffeCaller | CertificateCaller;

export interface ServiceAccountCaller {
  readonly kind: 'service_account';
  readonly namespace: string;
  readonly serviceAccount: string;
  /** The pod that the token is bound to; absent if it is bound to none. */
  readonly pod?: { readonly name: string; readonly uid: string };
}

/** One text per pod, or per service account if the token is bound to no pod. No name contains a slash. */
export function callerKey({ namespace, serviceAccount, pod }: ServiceAccountCaller): string {
  return `${namespace}/${serviceAccount}/${pod?.uid ?? ''}`;
}

/** Proven by a client certificate with one URI of this scheme (the X.509-SVID standard, §2). */
export interface SpiffeCaller {
  readonly kind: 'spiffe';
  /** `spiffe://trust-domain/path` */
  readonly uri: string;
}

/** Proven by any other client certificate. */
export interface CertificateCaller {
  readonly kind: 'certificate';
  /** DNS names ignore case; a common name is whatever text its authority put there. */
  readonly by: 'dns_names' | 'common_name';
  /** Its DNS names, in lower case; if it has none, its only common name. */
  readonly names: readonly string[];
}

/**
 * What became of a proof.
 * - `refused`: it proves nothing, now or later.
 * - `unavailable`: whoever could tell does not answer; the same proof may be good after `retryAfterMs`.
 *
 * Both have the caller where the cluster's signature holds.
 */
export type Verdict =
  | { readonly kind: 'accepted'; readonly caller: Caller }
  | { readonly kind: 'refused'; readonly reason: RefusedProof; readonly caller?: Caller }
  | { readonly kind: 'unavailable'; readonly retryAfterMs: number; readonly caller?: Caller };

/** Why a service account token is refused: fit for logs and labels, and of little use to an attacker. */
export const REFUSED_PROOFS = [
  /** No signed JWT of a plausible size, or of an algorithm that clusters do not sign with. */
  'malformed',
  /** Signed by no key of this cluster. */
  'signature',
  'issuer',
  /** An audience other than ours, or others beside it. */
  'audience',
  'expired',
  'not_yet_valid',
  /** It belongs to no service account, or contradicts itself. */
  'claims',
  /** The cluster no longer accepts it: its pod or service account is gone. */
  'revoked',
] as const;
export type RefusedProof = (typeof REFUSED_PROOFS)[number];
