/**
 * The narrow interface between the data path and the rest of the program. What stands behind `startProxy` may
 * change; the behaviour asserted in `test/wire` may not.
 */

import type { Clock } from '../clock.ts';
import type {
  AccessLogConfig,
  CaptureConfig,
  Config,
  ForwardProxyConfig,
  GatewayCaller,
  ListenAddress,
  ProxyLimits,
  RedirectConfig,
  RouteConfig,
} from '../config/config.ts';
import type { Logger } from '../log/logger.ts';
import type { BearerSupply } from '../token/bearer-source.ts';
import type { AppContext } from './app/context.ts';
import type { Service } from './app/listener.ts';
import type { FindOriginal } from './capture/redirected-port.ts';
import type { Tracer } from './following/tracer.ts';
import type { Protocol } from './http/protocol.ts';
import type { Network } from './io/network.ts';
import type { ProxyMetrics } from './metrics.ts';
import type { RefusedHost } from './routing/refused-hosts.ts';
import type { Leaves } from './tls/termination.ts';

/** What requests are served by: what another configuration may change while it runs. */
export interface ServingOptions {
  /** First match wins. */
  readonly routes: readonly RouteConfig[];
  readonly forwardProxy?: ForwardProxyConfig;
  /** Hosts in whose place it listens; `leaves` are there for those over TLS. */
  readonly capture?: CaptureConfig;
  /** Hosts of connections that the system redirects here; `leaves` are there for them. */
  readonly redirect?: RedirectConfig;
  /** Passed on when absent. */
  readonly crossSiteRequests?: Config['crossSiteRequests'];
  readonly limits: ProxyLimits;
  /** None is written when absent. */
  readonly accessLog?: AccessLogConfig;
  /** Who may use which routes, where `door` tells callers apart; nobody when absent. */
  readonly callers?: readonly GatewayCaller[];
  /** By credential name; holds every name that a route uses. */
  readonly bearers: ReadonlyMap<string, BearerSupply>;
}

export interface ProxyOptions extends ServingOptions {
  readonly listen: ListenAddress;
  /** Where the program listens besides: no destination of the forward proxy unless the list has it. */
  readonly otherListeners?: readonly ListenAddress[];
  readonly metrics: ProxyMetrics;
  readonly clock: Clock;
  readonly log: Logger;
  /** For the lines of the access log; `log` when absent. */
  readonly accessLogger?: Logger;
  /** Makes spans of requests; none are made when absent. */
  readonly tracer?: Tracer;
  /** Certificates that apps are shown where their TLS is intercepted. */
  readonly leaves?: Leaves;
  /** Where redirected connections were going; there is one where `redirect` is. */
  readonly findOriginal?: FindOriginal;
  /** Serves what comes at `listen` in another way than by whatever version of HTTP it begins with. */
  readonly door?: (context: AppContext) => Service;
  /** The system's, when absent. */
  readonly network?: Network;
  /** Marks requests as having passed here, so that one that comes back is a loop. Random per process. */
  readonly instanceId: string;
}

/** The settings that were in use before. */
export interface Superseded {
  /** Resolves as soon as nothing is under way by them. */
  whenUnused(): Promise<void>;
}

export interface DataPath {
  /** Where it listens: the port that the system picked when 0 was asked for. */
  readonly address: ListenAddress;
  /** What the upstream of each route speaks, by the route's name; undefined while nobody has asked it. */
  spoken(): ReadonlyMap<string, Protocol | undefined>;
  /**
   * Serves what comes from now on by other settings; what is under way ends by those before. Connections to upstreams that
   * are reached as before stay open. One call at a time.
   * @throws {SidecarError} `configuration` as `startProxy`, and nothing has changed.
   */
  reconfigure(next: ServingOptions): Promise<Superseded>;
  /** Hosts that the forward proxy, or capture, has lately kept an app from; the latest first. */
  refusedHosts(): readonly RefusedHost[];
  /**
   * Asks for connections to be closed by who made them, and serves on: HTTP/2 is told by GOAWAY, HTTP/1.1 by `Connection: close`
   * with each answer. Connections that are made from now on are served as well.
   */
  askToLeave(): void;
  /** Resolves as soon as no app connection is open, at the latest after `boundMs`; serves on meanwhile. */
  whenUnused(boundMs: number): Promise<void>;
  /**
   * Stops accepting, lets what is in flight finish for at most `timeoutMs`, then cuts what is left. New requests
   * on open connections are answered 503 `draining`. Resolves when no connection is left; safe to call again.
   */
  drain(timeoutMs: number): Promise<void>;
}
