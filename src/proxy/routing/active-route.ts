import type { RouteConfig } from '../../config/config.ts';
import type { BearerSource } from '../../token/bearer-source.ts';
import type { RouteMetrics } from '../metrics.ts';
import type { UpstreamPool } from '../upstream/pool.ts';
import type { RouteMatcher } from './routes.ts';

/** A configured route, or a destination of the forward proxy, with what it takes to serve it. */
export interface ActiveRoute {
  readonly config: RouteConfig;
  readonly matcher: RouteMatcher;
  readonly pool: UpstreamPool;
  /** Absent where no token is to go. */
  readonly bearer: BearerSource | undefined;
  readonly metrics: RouteMetrics;
}
