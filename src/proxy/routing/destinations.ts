import type { Protocol } from '../http/protocol.ts';
import type { IncomingRequest } from '../streams/message.ts';
import type { ActiveRoute } from './active-route.ts';
import type { Destination } from './destination.ts';
import { destinationOf, interceptedDestinationOf } from './find-destination.ts';
import type { AskedDestination } from './forward-destination.ts';
import type { ForwardProxy } from './forward-proxy.ts';

/** Finds where requests go. Another one may take its place at any time: nobody keeps what is behind it. */
export interface DestinationFinder {
  /** Names that a Host may have, where requests of other sites are refused; absent where they are not looked for. */
  readonly ownNames: ReadonlySet<string> | undefined;
  /** @throws {SidecarError} `destination_not_allowed`, `bad_request` or `route_not_found`. */
  find(request: IncomingRequest): Destination;
  /**
   * Where a request goes that came through an intercepted CONNECT to `asked`.
   * @throws {SidecarError} `destination_not_allowed`, `misdirected_request` or `bad_request`.
   */
  findIntercepted(asked: AskedDestination, request: IncomingRequest): Destination;
  /** What the upstream of each route speaks, by the route's name; undefined where that is not known. */
  spoken(): ReadonlyMap<string, Protocol | undefined>;
  /** Closes every connection to an upstream. */
  close(): void;
}

/** The routes and the forward proxy of one configuration. */
export class Destinations implements DestinationFinder {
  readonly routes: readonly ActiveRoute[];
  /** Absent where only routes are served. */
  readonly forwardProxy: ForwardProxy | undefined;
  readonly ownNames: ReadonlySet<string> | undefined;

  constructor(
    routes: readonly ActiveRoute[],
    forwardProxy: ForwardProxy | undefined,
    ownNames: ReadonlySet<string> | undefined,
  ) {
    this.routes = routes;
    this.forwardProxy = forwardProxy;
    this.ownNames = ownNames;
  }

  find(request: IncomingRequest): Destination {
    return destinationOf(request, this);
  }

  findIntercepted(asked: AskedDestination, request: IncomingRequest): Destination {
    return interceptedDestinationOf(asked, request, this);
  }

  spoken(): ReadonlyMap<string, Protocol | undefined> {
    return new Map(this.routes.map(({ config, upstream }) => [config.name, upstream.speaks]));
  }

  close(): void {
    for (const { upstream } of this.routes) upstream.close();
    this.forwardProxy?.close();
  }
}
