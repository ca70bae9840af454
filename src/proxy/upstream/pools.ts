import type { Clock } from '../../clock.ts';
import type { RouteConfig } from '../../config/config.ts';
import type { Logger } from '../../log/logger.ts';
import type { Network } from '../io/network.ts';
import type { IncomingRequest } from '../streams/message.ts';
import type { UpstreamStream, UpstreamStreams, UpstreamUser } from '../streams/upstream-stream.ts';
import { Dialer } from './dialer.ts';
import { Http1Pool } from './http1-pool.ts';
import type { OpenUpstreams } from './open-upstreams.ts';

export interface UpstreamPoolsOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly network: Network;
  /** The connections of every route. */
  readonly all: OpenUpstreams;
  /** A number in [0, 1); chance when absent. */
  readonly random?: () => number;
}

/** The connections of one route to its upstream, whatever version of HTTP they speak. */
export class UpstreamPools implements UpstreamStreams {
  readonly #dialer: Dialer;
  readonly #http1: Http1Pool;

  /** @throws {SidecarError} `configuration` when a TLS file of the route cannot be used. */
  constructor(route: RouteConfig, options: UpstreamPoolsOptions) {
    const { clock, log, network, all, random = Math.random } = options;
    this.#dialer = new Dialer(route, { clock, log, network, onTlsChange: () => this.#http1.renew() });
    this.#http1 = new Http1Pool(route, { clock, dialer: this.#dialer, all, random });
  }

  acquire(_request: IncomingRequest, user: UpstreamUser, trustMs: number): UpstreamStream {
    return this.#http1.acquire(user, trustMs);
  }

  acquireNew(_request: IncomingRequest, user: UpstreamUser): UpstreamStream {
    return this.#http1.acquireNew(user);
  }

  acquireTunnel(user: UpstreamUser): UpstreamStream {
    return this.#http1.acquireNew(user);
  }

  discardIdle(): void {
    this.#http1.discardIdle();
  }

  retire(): void {
    this.#dialer.close();
    this.#http1.retire();
  }

  close(): void {
    this.#dialer.close();
    this.#http1.close();
  }
}
