/** The broker as pods know it: where their sidecars request tokens, and the CAs by which they verify it. */

/** See docs/reference/profiles.md. */
export interface BrokerOfPods {
  /** `https://HOST:PORT`, without a path. */
  readonly url: string;
  /** The audience of the service account tokens shown to the broker. */
  readonly audience: string;
  readonly authorities: BrokerAuthorities;
}

type BrokerAuthorities =
  | { readonly from: 'public' }
  /** A ConfigMap of the pod's namespace, with the key `ca.crt`. */
  | { readonly from: 'config_map'; readonly name: string }
  /** PEM that pods get in an annotation. */
  | { readonly from: 'file'; current(): string };

/** Characters of the PEM: a pod's annotations share 256 KiB. */
export const MAX_AUTHORITIES = 32 * 1024;
