import type { LookupFunction } from 'node:net';
import type { EgressProxyConfig, TlsConfig } from '../config/config.ts';

/** A server to examine, and how. */
export interface Destination {
  readonly protocol: 'http' | 'https';
  /** Name or address as dialled; IPv6 without brackets. */
  readonly host: string;
  readonly port: number;
  readonly tls: TlsConfig;
  /** Replaces `certFile` and `keyFile`: the client's own, as PEM. */
  readonly identity?: { readonly cert: string; readonly key: string };
  /** HTTP versions to offer in the handshake. */
  readonly offers: readonly string[];
  /** The version it has to choose, or to speak without a choice over `http`. */
  readonly mustSpeak?: 'h2' | 'h2c';
  readonly egressProxy?: EgressProxyConfig;
  /** Bounds the lookup, the connection and the handshake separately. */
  readonly withinMs: number;
  readonly lookup?: LookupFunction;
  /** Where the sidecar leaves what apps trust, if it ends their TLS: it may answer in place of a host. */
  readonly trustDirectory?: string;
}
