/** Who calls, once it has been proved, and what became of a proof. */

export type Caller = ServiceAccountCaller | SpiffeCaller | CertificateCaller;

export interface ServiceAccountCaller {
  readonly kind: 'service_account';
  readonly namespace: string;
  readonly serviceAccount: string;
  /** The pod that the token is bound to; absent where it is bound to none. */
  readonly pod?: { readonly name: string; readonly uid: string };
}

/** One text for each pod, or for the service account where a token is bound to none. No name holds a slash. */
export function callerKey({ namespace, serviceAccount, pod }: ServiceAccountCaller): string {
  return `${namespace}/${serviceAccount}/${pod?.uid ?? ''}`;
}

/** By a client certificate with one URI of this scheme (the X.509-SVID standard, §2). */
export interface SpiffeCaller {
  readonly kind: 'spiffe';
  /** `spiffe://trust-domain/path` */
  readonly uri: string;
}

/** By any other client certificate. */
export interface CertificateCaller {
  readonly kind: 'certificate';
  /** DNS names are the same in any case; a common name is a text of its authority's. */
  readonly by: 'dns_names' | 'common_name';
  /** Its DNS names, in lower case; where it has none, its one common name. */
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

/** Why a service account token is refused: fit for logs and labels, and of little use to who guesses. */
export const REFUSED_PROOFS = [
  /** No signed JWT of a size that is believed, or of an algorithm that clusters do not sign with. */
  'malformed',
  /** By no key of this cluster. */
  'signature',
  'issuer',
  /** Another audience than ours, or others beside it. */
  'audience',
  'expired',
  'not_yet_valid',
  /** It is not of a service account, or says two things. */
  'claims',
  /** The cluster takes it no longer: its pod or service account is gone. */
  'revoked',
] as const;
export type RefusedProof = (typeof REFUSED_PROOFS)[number];
