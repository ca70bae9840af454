import { SidecarError } from '../../platform/errors.ts';
import type { IncomingRequest } from '../streams/contract.ts';
import type { ActiveRoute } from './active-route.ts';
import type { Destination } from './destination.ts';
import type { ForwardProxy } from './forward-proxy.ts';
import { hasDotSegment, splitTarget } from './request-path.ts';
import { matchRoute, upstreamTarget } from './routes.ts';

/** What there is to choose from. */
interface Served {
  readonly routes: readonly ActiveRoute[];
  /** Absent where only routes are served. */
  readonly forwardProxy: ForwardProxy | undefined;
}

/**
 * Decides where a request goes: by its target where that names a host (the forward proxy), else by Host and path.
 * @throws {SidecarError} `destination_not_allowed`, `bad_request` or `route_not_found`.
 */
export function destinationOf(
  head: Pick<IncomingRequest, 'host' | 'method' | 'target' | 'targetForm'>,
  { routes, forwardProxy }: Served,
): Destination {
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

/** Whether a path may climb as far as it likes without leaving its route: the route is given every path. */
function takesEveryPath(route: ActiveRoute | undefined, routes: readonly ActiveRoute[]): boolean {
  return route?.config.upstream.basePath === '' && routes.every(({ matcher }) => matcher.prefix === '');
}
