import type { Clock } from '../clock.ts';
import type { ProxyLimits, RouteConfig } from '../config/config.ts';
import type { Logger } from '../log.ts';
import type { BearerSource } from '../token/bearer-source.ts';
import type { ForwardProxy } from './forward-proxy.ts';
import type { RouteMetrics } from './metrics.ts';
import type { Network } from './network.ts';
import type { PeerWatch } from './peer-watch.ts';
import type { RouteMatcher } from './routes.ts';
import type { UpstreamPool } from './upstream-pool.ts';

/** A configured route, or a destination of the forward proxy, with what it takes to serve it. */
export interface ActiveRoute {
  readonly config: RouteConfig;
  readonly matcher: RouteMatcher;
  readonly pool: UpstreamPool;
  /** Absent where no token is to go. */
  readonly bearer: BearerSource | undefined;
  readonly metrics: RouteMetrics;
}

/** Requests in flight over all connections, and whether new ones are taken. */
export interface ProxyLoad {
  inFlight: number;
  draining: boolean;
}

/** What every connection and request of one listener shares. */
export interface ProxyContext {
  readonly routes: readonly ActiveRoute[];
  /** Absent where only routes are served. */
  readonly forwardProxy: ForwardProxy | undefined;
  /** Names that a Host may have, where requests of other sites are refused; absent where they are not looked for. */
  readonly ownNames: ReadonlySet<string> | undefined;
  readonly limits: ProxyLimits;
  readonly clock: Clock;
  readonly log: Logger;
  readonly network: Network;
  readonly instanceId: string;
  /** Counts what no route matched. */
  readonly noRoute: RouteMetrics;
  readonly load: ProxyLoad;
  /** Tells which clients have left. */
  readonly peers: PeerWatch;
}
