import type { LookupFunction } from 'node:net';
import type { EgressProxyConfig, TlsConfig } from '../config/config.ts';

/** A server that is looked at, and how. */
export interface Destination {
  readonly protocol: 'http' | 'https';
  /** Name or address as dialled; IPv6 without brackets. */
  readonly host: string;
  readonly port: number;
  readonly tls: TlsConfig;
  /** Instead of `certFile` and `keyFile`: PEM of the client's own. */
  readonly identity?: { readonly cert: string; readonly key: string };
  /** Versions of HTTP to offer in the handshake. */
  readonly offers: readonly string[];
  /** What it has to choose of them, or over `http` to be spoken without a choice. */
  readonly mustSpeak?: 'h2' | 'h2c';
  readonly egressProxy?: EgressProxyConfig;
  /** Bound on each of name, connection and handshake. */
  readonly withinMs: number;
  readonly lookup?: LookupFunction;
  /** Where the sidecar leaves what apps trust, if it ends their TLS: it may be met in the place of a host. */
  readonly trustDirectory?: string;
}
