import type { RouteConfig } from '../../config/config.ts';
import type { UpstreamStreams } from '../streams/upstream-stream.ts';

/** A route as far as its connections go. */
export interface ConnectedRoute {
  readonly config: RouteConfig;
  readonly upstream: UpstreamStreams;
  /** Absent where no token is to go. */
  readonly bearer: object | undefined;
}

/** The connections of one configuration, for routes of the next that make theirs in the same way. */
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

  /** Those that the route may go on with; they are its own from here on. */
  take(config: RouteConfig, hasToken: boolean): UpstreamStreams | undefined {
    return this.#pools.get(wayOf(config, hasToken))?.pop();
  }

  /** Those that nobody has taken end with the requests that they carry. */
  retireRest(): void {
    for (const pools of this.#pools.values()) for (const pool of pools) pool.retire();
    this.#pools.clear();
  }
}

/**
 * All that decides how connections are made and how long they are waited for. Whether a token goes there does, too: where
 * none does, they may not lead to the program itself.
 */
function wayOf(
  { name, upstream, timeouts, tls, egressProxy, protocol }: RouteConfig,
  hasToken: boolean,
): string {
  const { basePath: _, ...address } = upstream;
  return JSON.stringify([name, address, timeouts, tls, egressProxy ?? null, protocol, hasToken]);
}
