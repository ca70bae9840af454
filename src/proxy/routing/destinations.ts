import { SidecarError } from '../../errors.ts';
import type { Protocol } from '../http/protocol.ts';
import type { IncomingRequest } from '../streams/message.ts';
import type { ActiveRoute } from './active-route.ts';
import type { Destination } from './destination.ts';
import { destinationOf } from './find-destination.ts';
import type { AskedDestination } from './forward-destination.ts';
import type { ForwardProxy } from './forward-proxy.ts';

/** By which list a host gets the token: that of the forward proxy, or that of captured hosts. */
export type HostList = 'forwardProxy' | 'captured';

/** A host that connections are to which end here, and the list that it is on. */
export interface ListedHost {
  readonly list: HostList;
  readonly asked: AskedDestination;
}

/** Finds where requests go. Another one may take its place at any time: nobody keeps what is behind it. */
export interface DestinationFinder {
  /** Names that a Host may have, where requests of other sites are refused; absent where they are not looked for. */
  readonly ownNames: ReadonlySet<string> | undefined;
  /** @throws {SidecarError} `destination_not_allowed`, `bad_request` or `route_not_found`. */
  find(request: IncomingRequest): Destination;
  /**
   * Where a request goes that came on a connection to a listed host. One that is no longer listed gets no token.
   * @throws {SidecarError} `destination_not_allowed`, `misdirected_request` or `bad_request`.
   */
  findListed(host: ListedHost, request: IncomingRequest): Destination;
  /**
   * What serves connections to a listed host, before there is a request.
   * @throws {SidecarError} `destination_not_allowed`.
   */
  routeTo(host: ListedHost): ActiveRoute;
  /** What the upstream of each route speaks, by the route's name; undefined where that is not known. */
  spoken(): ReadonlyMap<string, Protocol | undefined>;
  /** Closes every connection to an upstream. */
  close(): void;
}

export type DestinationsOptions = Pick<Destinations, 'routes' | 'forwardProxy' | 'captured' | 'ownNames'>;

/** The routes, the forward proxy and the captured hosts of one configuration. */
export class Destinations implements DestinationFinder {
  readonly routes: readonly ActiveRoute[];
  /** Absent where only routes are served. */
  readonly forwardProxy: ForwardProxy | undefined;
  /** Absent where no hosts are captured. */
  readonly captured: ForwardProxy | undefined;
  readonly ownNames: ReadonlySet<string> | undefined;

  constructor({ routes, forwardProxy, captured, ownNames }: DestinationsOptions) {
    this.routes = routes;
    this.forwardProxy = forwardProxy;
    this.captured = captured;
    this.ownNames = ownNames;
  }

  find(request: IncomingRequest): Destination {
    return destinationOf(request, this);
  }

  findListed({ list, asked }: ListedHost, request: IncomingRequest): Destination {
    return this.#proxyOf(list).listedDestination(asked, request);
  }

  routeTo({ list, asked }: ListedHost): ActiveRoute {
    return this.#proxyOf(list).listedRoute(asked);
  }

  spoken(): ReadonlyMap<string, Protocol | undefined> {
    return new Map(this.routes.map(({ config, upstream }) => [config.name, upstream.speaks]));
  }

  /** All that have been activated. */
  get activeRoutes(): readonly ActiveRoute[] {
    const { routes, forwardProxy, captured } = this;
    return [...routes, ...(forwardProxy?.activeRoutes ?? []), ...(captured?.activeRoutes ?? [])];
  }

  close(): void {
    for (const { upstream } of this.activeRoutes) upstream.close();
  }

  #proxyOf(list: HostList): ForwardProxy {
    const proxy = this[list];
    if (proxy !== undefined) return proxy;
    throw new SidecarError('destination_not_allowed', 'no hosts are listed any more for such connections');
  }
}
