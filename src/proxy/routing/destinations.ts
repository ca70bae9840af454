import { SidecarError } from '../../platform/errors.ts';
import type { ListenAddress } from '../../platform/net/address.ts';
import type { Protocol } from '../http/messages.ts';
import type { IncomingRequest } from '../streams/contract.ts';
import type { ForwardProxy, HostList, RequestedHost } from './forward-proxy.ts';
import {
  type ActiveRoute,
  type Destination,
  hasDotSegment,
  matchRoute,
  splitTarget,
  upstreamTarget,
} from './routes.ts';

/** A host whose connections end here. */
export interface ListedHost {
  readonly list: HostList;
  readonly asked: RequestedHost;
}

type DestinationsOptions = Pick<
  Destinations,
  'routes' | 'forwardProxy' | 'captured' | 'redirected' | 'ownNames'
>;

/** Where the requests of one configuration go. It may be replaced at any time: keep nothing of it. */
export class Destinations {
  readonly routes: readonly ActiveRoute[];
  readonly forwardProxy: ForwardProxy | undefined;
  readonly captured: ForwardProxy | undefined;
  readonly redirected: ForwardProxy | undefined;
  readonly ownNames: ReadonlySet<string> | undefined;

  constructor({ routes, forwardProxy, captured, redirected, ownNames }: DestinationsOptions) {
    this.routes = routes;
    this.forwardProxy = forwardProxy;
    this.captured = captured;
    this.redirected = redirected;
    this.ownNames = ownNames;
  }

  /**
   * By the target if it names a host (forward proxy), else by Host and path.
   * @throws {SidecarError} `destination_not_allowed`, `bad_request` or `route_not_found`.
   */
  find(head: Pick<IncomingRequest, 'host' | 'method' | 'target' | 'targetForm'>): Destination {
    const { routes, forwardProxy } = this;
    if (head.targetForm === 'absolute' || head.targetForm === 'authority') {
      if (forwardProxy === undefined) {
        throw new SidecarError('destination_not_allowed', 'this listener is not a forward proxy');
      }
      return head.targetForm === 'absolute'
        ? forwardProxy.requestDestination(head)
        : forwardProxy.tunnelDestination(head);
    }
    const target = splitTarget(head.target);
    const route = matchRoute(routes, head.host, target.path);
    if (hasDotSegment(target.path) && !takesEveryPath(route, routes)) {
      throw new SidecarError('bad_request', 'the path must not hold dot segments, encoded or not');
    }
    if (route === undefined) throw new SidecarError('route_not_found', 'no route has this host and path');
    return { route, target: upstreamTarget(route.config, route.matcher, target), tunnel: false };
  }

  /**
   * For a request on a connection to a listed host; one no longer listed gets no token.
   * @throws {SidecarError} `destination_not_allowed`, `misdirected_request` or `bad_request`.
   */
  findListed({ list, asked }: ListedHost, request: IncomingRequest): Destination {
    return this.#proxyOf(list).listedDestination(asked, request);
  }

  /**
   * For a connection without a request yet.
   * @throws {SidecarError} `destination_not_allowed`.
   */
  routeTo({ list, asked }: ListedHost): ActiveRoute {
    return this.#proxyOf(list).listedRoute(asked);
  }

  listsRedirected(asked: RequestedHost): boolean {
    return this.redirected?.lists(asked) === true;
  }

  /** For redirected connections that pass unchanged. */
  passthroughRoute(original: ListenAddress): ActiveRoute {
    return this.#proxyOf('redirected').passthroughRoute(original);
  }

  /** By route name; undefined if unknown. */
  spoken(): ReadonlyMap<string, Protocol | undefined> {
    return new Map(this.routes.map(({ config, upstream }) => [config.name, upstream.negotiatedProtocol]));
  }

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

/** No path can climb out of it. */
function takesEveryPath(route: ActiveRoute | undefined, routes: readonly ActiveRoute[]): boolean {
  return route?.config.upstream.basePath === '' && routes.every(({ matcher }) => matcher.prefix === '');
}
