import type { RouteConfig } from '../../config/config.ts';
import type { UpstreamStreams } from '../streams/upstream-stream.ts';

/** A route as far as its connections go. */
interface ConnectedRoute {
  readonly config: RouteConfig;
  readonly upstream: UpstreamStreams;
  /** Absent where no token is sent. */
  readonly bearer: object | undefined;
}

/** One configuration's connections, for routes of the next that connect in the same way. */
export class WarmPools {
  readonly #pools = new Map<string, UpstreamStreams[]>();

  constructor(routes: Iterable<ConnectedRoute>) {
    for (const { config, upstream, bearer } of routes) {
      const way = wayOf(config, bearer !== undefined);
      const alike = this.#pools.get(way);
      if (alike === undefined) this.#pools.set(way, [upstream]);
      else alike.push(upstream);
    }
  }

  /** The connections that the route may go on with; they are its own from here on. */
  take(config: RouteConfig, hasToken: boolean): UpstreamStreams | undefined {
    return this.#pools.get(wayOf(config, hasToken))?.pop();
  }

  /** Retires what nobody has taken: it closes once its requests have ended. */
  retireRest(): void {
    for (const pools of this.#pools.values()) for (const pool of pools) pool.retire();
    this.#pools.clear();
  }
}

/**
 * Everything that decides how connections are made and how long they are waited for. That includes whether a token goes
 * there: without one, they may not lead to the program itself.
 */
function wayOf(
  { name, upstream, timeouts, tls, egressProxy, protocol }: RouteConfig,
  hasToken: boolean,
): string {
  const { basePath: _, ...address } = upstream;
  return JSON.stringify([name, address, timeouts, tls, egressProxy ?? null, protocol, hasToken]);
}
