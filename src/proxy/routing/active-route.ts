import type { RouteConfig } from '../../config/config.ts';
import type { BearerSource } from '../../token/bearer-source.ts';
import type { RouteObserver } from '../observer.ts';
import type { UpstreamStreams } from '../streams/contract.ts';
import type { TokenPlacement } from '../streams/token-placement.ts';
import type { RouteMatcher } from './routes.ts';

/** A configured route, or a destination of the forward proxy, with what it takes to serve it. */
export interface ActiveRoute {
  readonly config: RouteConfig;
  readonly matcher: RouteMatcher;
  readonly upstream: UpstreamStreams;
  /** Absent where no token is sent. */
  readonly bearer: BearerSource | undefined;
  /** Absent where the token is `Authorization: Bearer …`. */
  readonly placement: TokenPlacement | undefined;
  readonly observer: RouteObserver;
}

/** Activates a route: opens its upstream's streams, and finds its observer. */
export type ActivateRoute = (config: RouteConfig, bearer: BearerSource | undefined) => ActiveRoute;
