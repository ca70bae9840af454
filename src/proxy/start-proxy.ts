import type { RouteConfig } from '../config/config.ts';
import { SidecarError } from '../errors.ts';
import type { ActiveRoute } from './forwarding.ts';
import { Listener } from './listener.ts';
import type { DataPath, ProxyOptions } from './proxy.ts';
import { routeMatcher } from './routes.ts';
import { createUpstreamPool } from './upstream-pool.ts';

/** The `route` label of requests that no route matched. */
const NO_ROUTE = 'none';

/**
 * Starts the data path: resolves once it accepts connections.
 * @throws {SidecarError} `configuration` when it cannot listen, a TLS file cannot be read, or a route's credential
 * has no source.
 */
export async function startProxy(options: ProxyOptions): Promise<DataPath> {
  const { metrics, limits, clock, log, instanceId } = options;
  const routes = options.routes.map(
    (config): ActiveRoute => ({
      config,
      matcher: routeMatcher(config.match),
      pool: createUpstreamPool(config),
      bearer: bearerOf(config, options),
      metrics: metrics.forRoute(config.name),
    }),
  );
  const listener = new Listener({
    routes,
    limits,
    clock,
    log,
    instanceId,
    noRoute: metrics.forRoute(NO_ROUTE),
    load: { inFlight: 0, draining: false },
  });
  const address = await listener.listen(options.listen);
  return {
    address,
    whenUnused: (boundMs) => listener.whenUnused(boundMs),
    async drain(timeoutMs) {
      await listener.drain(timeoutMs);
      for (const { pool } of routes) pool.close();
    },
  };
}

function bearerOf(route: RouteConfig, { bearers }: ProxyOptions): ActiveRoute['bearer'] {
  const bearer = bearers.get(route.credential);
  if (bearer === undefined) {
    throw new SidecarError(
      'configuration',
      `route ${route.name}: credential ${route.credential} is not configured`,
    );
  }
  return bearer;
}
