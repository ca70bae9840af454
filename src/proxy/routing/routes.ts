import type { RouteConfig } from '../../config/config.ts';
import type { OriginTarget } from './request-path.ts';

export interface RouteMatcher {
  readonly host: string | undefined;
  /** Without its final slash, so empty for `/`. */
  readonly prefix: string;
}

export function routeMatcher(match: RouteConfig['match']): RouteMatcher {
  return { host: match.host?.toLowerCase(), prefix: match.pathPrefix.replace(/\/+$/, '') };
}

/** The host of an authority (RFC 9110 §7.2), in lower case and without port; an IPv6 address keeps its brackets. */
export function hostName(authority: string): string {
  const colon = authority.lastIndexOf(':');
  const host = colon > authority.lastIndexOf(']') ? authority.slice(0, colon) : authority;
  return host.toLowerCase();
}

/**
 * The first route whose host and path prefix match; `authority` is the request's Host. Prefixes match by whole
 * segments, as a Kubernetes Ingress `Prefix` path does: `/a` and `/a/` match `/a`, `/a/` and `/a/x`, but not `/ab`. `*`
 * (RFC 9112 §3.2.4) is matched by the prefix `/` alone.
 */
export function matchRoute<Route extends { readonly matcher: RouteMatcher }>(
  routes: readonly Route[],
  authority: string | undefined,
  path: string,
): Route | undefined {
  // Runs for every request: `find` would allocate a function each time.
  for (const route of routes) {
    const { host, prefix } = route.matcher;
    if (hasHost(authority, host) && hasPrefix(path, prefix)) return route;
  }
  return undefined;
}

/** The request target sent upstream: base path, then the path with or without its prefix, then the query, byte for byte. */
export function upstreamTarget(
  route: Pick<RouteConfig, 'stripPrefix' | 'upstream'>,
  matcher: RouteMatcher,
  target: OriginTarget,
): string {
  if (target.path === '*') return '*';
  const path = route.stripPrefix ? target.path.slice(matcher.prefix.length) || '/' : target.path;
  return route.upstream.basePath + path + target.query;
}

function hasHost(authority: string | undefined, host: string | undefined): boolean {
  if (host === undefined) return true;
  return authority !== undefined && hostName(authority) === host;
}

function hasPrefix(path: string, prefix: string): boolean {
  if (prefix === '') return true;
  return path.startsWith(prefix) && (path.length === prefix.length || path[prefix.length] === '/');
}
