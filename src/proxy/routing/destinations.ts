import { SidecarError } from '../../platform/errors.ts';
import type { ListenAddress } from '../../platform/net/address.ts';
import type { Protocol } from '../http/messages.ts';
import type { IncomingRequest } from '../streams/contract.ts';
import type { ActiveRoute } from './active-route.ts';
import type { Destination } from './destination.ts';
import { destinationOf } from './find-destination.ts';
import type { AskedDestination } from './forward-destination.ts';
import type { ForwardProxy } from './forward-proxy.ts';
import type { HostList } from './host-list.ts';

/** A host whose connections end here, and the list that it is on. */
export interface ListedHost {
  readonly list: HostList;
  readonly asked: AskedDestination;
}

/** Finds where requests go. Another finder may replace it at any time: do not keep what is behind it. */
export interface DestinationFinder {
  /** Names that Host may have where cross-site requests are refused; absent where they are not checked. */
  readonly ownNames: ReadonlySet<string> | undefined;
  /** @throws {SidecarError} `destination_not_allowed`, `bad_request` or `route_not_found`. */
  find(request: IncomingRequest): Destination;
  /**
   * The destination of a request that came on a connection to a listed host. A host no longer listed gets no token.
   * @throws {SidecarError} `destination_not_allowed`, `misdirected_request` or `bad_request`.
   */
  findListed(host: ListedHost, request: IncomingRequest): Destination;
  /**
   * The route of connections to a listed host, before there is a request.
   * @throws {SidecarError} `destination_not_allowed`.
   */
  routeTo(host: ListedHost): ActiveRoute;
  /** Whether redirected connections to `asked` get the token. */
  listsRedirected(asked: AskedDestination): boolean;
  /** The route that makes and counts connections to where a redirected one was going, which pass as they are. */
  routePast(original: ListenAddress): ActiveRoute;
  /** The protocol of each route's upstream, by route name; undefined if unknown. */
  spoken(): ReadonlyMap<string, Protocol | undefined>;
  /** Closes every connection to an upstream. */
  close(): void;
}

type DestinationsOptions = Pick<
  Destinations,
  'routes' | 'forwardProxy' | 'captured' | 'redirected' | 'ownNames'
>;

/** The routes, the forward proxy, the captured and the redirected hosts of one configuration. */
export class Destinations implements DestinationFinder {
  readonly routes: readonly ActiveRoute[];
  /** Absent where only routes are served. */
  readonly forwardProxy: ForwardProxy | undefined;
  /** Absent where no hosts are captured. */
  readonly captured: ForwardProxy | undefined;
  /** Absent where no connections are redirected. */
  readonly redirected: ForwardProxy | undefined;
  readonly ownNames: ReadonlySet<string> | undefined;

  constructor({ routes, forwardProxy, captured, redirected, ownNames }: DestinationsOptions) {
    this.routes = routes;
    this.forwardProxy = forwardProxy;
    this.captured = captured;
    this.redirected = redirected;
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

  listsRedirected(asked: AskedDestination): boolean {
    return this.redirected?.lists(asked) === true;
  }

  routePast(original: ListenAddress): ActiveRoute {
    return this.#proxyOf('redirected').routePast(original);
  }

  spoken(): ReadonlyMap<string, Protocol | undefined> {
    return new Map(this.routes.map(({ config, upstream }) => [config.name, upstream.speaks]));
  }

  /** The routes activated so far for listed hosts, and for what passes beside them. */
  get listedRoutes(): readonly ActiveRoute[] {
    const { forwardProxy, captured, redirected } = this;
    return [forwardProxy, captured, redirected].flatMap((list) => list?.activeRoutes ?? []);
  }

  close(): void {
    for (const { upstream } of [...this.routes, ...this.listedRoutes]) upstream.close();
  }

  #proxyOf(list: HostList): ForwardProxy {
    const proxy = this[list];
    if (proxy !== undefined) return proxy;
    throw new SidecarError('destination_not_allowed', 'no hosts are listed any more for such connections');
  }
}
