import { SidecarError } from '../errors.ts';
import type { ActiveRoute, ProxyContext } from './context.ts';
import type { RequestHead } from './http1/request-head.ts';
import { hasDotSegment, splitTarget } from './request-target.ts';
import { matchRoute, upstreamTarget } from './routes.ts';

/** Where a request goes. */
export interface Destination {
  readonly route: ActiveRoute;
  /** The request target sent there. */
  readonly target: string;
  /** Whether bytes are tunnelled there (CONNECT) instead of a request being sent. */
  readonly tunnel: boolean;
}

/**
 * Decides where a request goes: by its target where that names a host (the forward proxy), else by Host and path.
 * @throws {SidecarError} `destination_not_allowed`, `bad_request` or `route_not_found`.
 */
export function destinationOf(
  head: Pick<RequestHead, 'host' | 'method' | 'target' | 'targetForm'>,
  { routes, forwardProxy }: Pick<ProxyContext, 'routes' | 'forwardProxy'>,
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

/** Whether a path that climbs, as far as it likes, stays where it was sent: there is no other path to get to. */
function takesEveryPath(route: ActiveRoute | undefined, routes: readonly ActiveRoute[]): boolean {
  return route?.config.upstream.basePath === '' && routes.every(({ matcher }) => matcher.prefix === '');
}
