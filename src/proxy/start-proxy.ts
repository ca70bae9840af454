import { SidecarError } from '../errors.ts';
import type { BearerSource } from '../token/bearer-source.ts';
import type { ActiveRoute } from './context.ts';
import { ForwardProxy } from './forward-proxy.ts';
import { Listener } from './listener.ts';
import type { DataPath, ProxyOptions } from './proxy.ts';
import { routeMatcher } from './routes.ts';
import { UpstreamPool } from './upstream-pool.ts';

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
      pool: new UpstreamPool(config, clock, log),
      bearer: bearerOf(`route ${config.name}`, config.credential, options),
      metrics: metrics.forRoute(config.name),
    }),
  );
  const forwardProxy =
    options.forwardProxy &&
    new ForwardProxy({
      config: options.forwardProxy,
      bearerOf: ({ host, credential }) => bearerOf(`forward proxy, ${host}`, credential, options),
      metrics,
      clock,
      log,
    });
  const listener = new Listener({
    routes,
    forwardProxy,
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
      forwardProxy?.close();
    },
  };
}

function bearerOf(user: string, credential: string, { bearers }: ProxyOptions): BearerSource {
  const bearer = bearers.get(credential);
  if (bearer === undefined) {
    throw new SidecarError('configuration', `${user}: credential ${credential} is not configured`);
  }
  return bearer;
}
