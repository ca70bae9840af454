/** What is behind `startProxy` may change, the behaviour asserted in `test/wire` may not. */

import type {
  AccessLogConfig,
  CaptureConfig,
  Config,
  ForwardProxyConfig,
  GatewayCaller,
  ProxyLimits,
  RedirectConfig,
  RouteConfig,
} from '../config/config.ts';
import type { Logger } from '../platform/log/logger.ts';
import type { ListenAddress } from '../platform/net/address.ts';
import type { Clock } from '../platform/time/clock.ts';
import type { TokenProvider } from '../token/bearer-source.ts';
import type { FindOriginalDst } from './capture/redirected.ts';
import type { DownstreamContext } from './downstream/connection.ts';
import type { Service } from './downstream/listener.ts';
import type { Protocol } from './http/messages.ts';
import type { Network } from './io/network.ts';
import type { ProxyMetrics } from './metrics.ts';
import type { Tracer } from './recording/request-recorder.ts';
import type { RefusedHost } from './routing/refused-hosts.ts';
import type { LeafCertificates } from './tls/interception-ca.ts';

/** The settings that `reconfigure` may change. */
export interface ServingOptions {
  /** First match wins. */
  readonly routes: readonly RouteConfig[];
  readonly forwardProxy?: ForwardProxyConfig;
  /** Listens in place of these hosts; those over TLS need `leaves`. */
  readonly capture?: CaptureConfig;
  /** Needs `leaves`. */
  readonly redirect?: RedirectConfig;
  /** Absent: passed on. */
  readonly crossSiteRequests?: Config['crossSiteRequests'];
  readonly limits: ProxyLimits;
  /** Absent: none is written. */
  readonly accessLog?: AccessLogConfig;
  /** Who may use which routes if `connectionHandler` tells callers apart; absent: nobody. */
  readonly callers?: readonly GatewayCaller[];
  /** By credential name. */
  readonly bearers: ReadonlyMap<string, TokenProvider>;
}

export interface ProxyOptions extends ServingOptions {
  readonly listen: ListenAddress;
  /** The forward proxy does not lead there unless they are listed. */
  readonly otherListeners?: readonly ListenAddress[];
  readonly metrics: ProxyMetrics;
  readonly clock: Clock;
  readonly log: Logger;
  readonly accessLogger?: Logger;
  readonly tracer?: Tracer;
  readonly leaves?: Pick<LeafCertificates, 'contextFor'>;
  /** Present whenever `redirect` is. */
  readonly findOriginal?: FindOriginalDst;
  /** Absent: by the HTTP version with which a connection begins. */
  readonly connectionHandler?: (context: DownstreamContext) => Service;
  readonly network?: Network;
  /** Random per process: marks requests, so that one that comes back is recognised as a loop. */
  readonly instanceId: string;
}

export interface Superseded {
  whenUnused(): Promise<void>;
}

export interface DataPath {
  /** With the actual port if 0 was asked for. */
  readonly address: ListenAddress;
  /** By route name; undefined until the upstream was asked. */
  spoken(): ReadonlyMap<string, Protocol | undefined>;
  /**
   * New requests use `next`; those in flight finish under the old settings. Connections to unchanged upstreams stay
   * open. One call at a time.
   * @throws {SidecarError} `configuration` as `startProxy`; then nothing has changed.
   */
  reconfigure(next: ServingOptions): Promise<Superseded>;
  /** The latest first. */
  refusedHosts(): readonly RefusedHost[];
  /**
   * Asks clients to close their connections (GOAWAY, or `Connection: close` with each HTTP/1.1 answer), and serves on,
   * new connections included.
   */
  enterLameDuck(): void;
  /** Resolves once no app connection is open, at the latest after `boundMs`; serves on meanwhile. */
  whenUnused(boundMs: number): Promise<void>;
  /**
   * Cuts what is in flight after `timeoutMs`. New requests on open connections get 503 `draining`. Resolves when no
   * connection is left; safe to call again.
   */
  drain(timeoutMs: number): Promise<void>;
}
