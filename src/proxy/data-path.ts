/**
 * The narrow interface between the data path and the rest of the program. What stands behind `startProxy` may
 * change; the behaviour asserted in `test/wire` may not.
 */

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
import type { BearerSupply } from '../token/bearer-source.ts';
import type { AppContext } from './app/connection.ts';
import type { Service } from './app/listener.ts';
import type { FindOriginal } from './capture/redirected.ts';
import type { Protocol } from './http/messages.ts';
import type { Network } from './io/network.ts';
import type { ProxyMetrics } from './metrics.ts';
import type { Tracer } from './recording/request-recorder.ts';
import type { RefusedHost } from './routing/refused-hosts.ts';
import type { LeafContexts } from './tls/interception-ca.ts';

/** What requests are served by: the settings that `reconfigure` may change. */
export interface ServingOptions {
  /** First match wins. */
  readonly routes: readonly RouteConfig[];
  readonly forwardProxy?: ForwardProxyConfig;
  /** Hosts in whose place it listens; those over TLS need `leaves`. */
  readonly capture?: CaptureConfig;
  /** Hosts of connections that the system redirects here; they need `leaves`. */
  readonly redirect?: RedirectConfig;
  /** Passed on when absent. */
  readonly crossSiteRequests?: Config['crossSiteRequests'];
  readonly limits: ProxyLimits;
  /** None is written when absent. */
  readonly accessLog?: AccessLogConfig;
  /** Who may use which routes, where `connectionHandler` tells callers apart; nobody when absent. */
  readonly callers?: readonly GatewayCaller[];
  /** By credential name; holds every name that a route uses. */
  readonly bearers: ReadonlyMap<string, BearerSupply>;
}

export interface ProxyOptions extends ServingOptions {
  readonly listen: ListenAddress;
  /** The program's other listeners: no destination of the forward proxy unless the list has them. */
  readonly otherListeners?: readonly ListenAddress[];
  readonly metrics: ProxyMetrics;
  readonly clock: Clock;
  readonly log: Logger;
  /** For the lines of the access log; `log` when absent. */
  readonly accessLogger?: Logger;
  /** Makes spans of requests; none are made when absent. */
  readonly tracer?: Tracer;
  /** Certificates shown to apps whose TLS is intercepted. */
  readonly leaves?: Pick<LeafContexts, 'contextFor'>;
  /** Tells where redirected connections were going; present whenever `redirect` is. */
  readonly findOriginal?: FindOriginal;
  /** Serves `listen` in its own way; when absent, by whatever version of HTTP a connection begins with. */
  readonly connectionHandler?: (context: AppContext) => Service;
  /** The system's, when absent. */
  readonly network?: Network;
  /** Marks requests that have passed here, so that one that comes back is recognised as a loop. Random per process. */
  readonly instanceId: string;
}

/** The settings that were in use before. */
export interface Superseded {
  /** Resolves once no request is served by them. */
  whenUnused(): Promise<void>;
}

export interface DataPath {
  /** Where it listens: the port that the system picked when 0 was asked for. */
  readonly address: ListenAddress;
  /** The protocol of each route's upstream, by route name; undefined until it was asked. */
  spoken(): ReadonlyMap<string, Protocol | undefined>;
  /**
   * Serves new requests by other settings; those in flight finish under the old ones. Connections to upstreams that are
   * reached as before stay open. One call at a time.
   * @throws {SidecarError} `configuration` as `startProxy`; then nothing has changed.
   */
  reconfigure(next: ServingOptions): Promise<Superseded>;
  /** Hosts that the forward proxy or capture has lately kept an app from, latest first. */
  refusedHosts(): readonly RefusedHost[];
  /**
   * Asks clients to close their connections, and serves on: by GOAWAY over HTTP/2, by `Connection: close` with each
   * HTTP/1.1 answer. New connections are served as well.
   */
  askToLeave(): void;
  /** Resolves once no app connection is open, after `boundMs` at the latest; serves on meanwhile. */
  whenUnused(boundMs: number): Promise<void>;
  /**
   * Stops accepting, lets what is in flight finish for at most `timeoutMs`, then cuts what is left. New requests
   * on open connections are answered 503 `draining`. Resolves when no connection is left; safe to call again.
   */
  drain(timeoutMs: number): Promise<void>;
}
