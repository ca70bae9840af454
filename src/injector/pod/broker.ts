/** The broker, as far as pods know of it: where their sidecars ask, and by which CAs they know whom they ask. */

/** See docs/reference/profiles.md. */
export interface BrokerOfPods {
  /** `https://HOST:PORT`, without a path. */
  readonly url: string;
  /** Of the service account tokens that the broker is shown. */
  readonly audience: string;
  readonly authorities: BrokerAuthorities;
}

export type BrokerAuthorities =
  | { readonly from: 'public' }
  /** A ConfigMap of the pod's namespace, with the key `ca.crt`. */
  | { readonly from: 'config_map'; readonly name: string }
  /** PEM that pods are given in an annotation. */
  | { readonly from: 'file'; current(): string };

/** Characters of the PEM: annotations of a pod have 256 KiB together. */
export const MOST_AUTHORITIES = 32 * 1024;
