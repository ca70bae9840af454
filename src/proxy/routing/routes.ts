/** Routes: what serves one, which one matches a request, and the target that goes upstream. */

import type { RouteConfig } from '../../config/config.ts';
import type { BearerSource } from '../../token/bearer-source.ts';
import type { RouteObserver } from '../observer.ts';
import type { UpstreamStreams } from '../streams/contract.ts';
import type { TokenPlacement } from '../streams/token-placement.ts';
import type { AskedDestination } from './forward-proxy.ts';

/** A configured route, or a destination of the forward proxy, with what it takes to serve it. */
export interface ActiveRoute {
  readonly config: RouteConfig;
  readonly matcher: RouteMatcher;
  readonly upstream: UpstreamStreams;
  /** Absent where no token is sent. */
  readonly bearer: BearerSource | undefined;
  /** Absent where the token is `Authorization: Bearer …`. */
  readonly placement: TokenPlacement | undefined;
  readonly observer: RouteObserver;
}

/** Activates a route: opens its upstream's streams, and finds its observer. */
export type ActivateRoute = (config: RouteConfig, bearer: BearerSource | undefined) => ActiveRoute;

/** Where a request goes. */
export interface Destination {
  readonly route: ActiveRoute;
  /** The request target sent upstream. */
  readonly target: string;
  /** Whether bytes are tunnelled there (CONNECT) instead of a request being sent. */
  readonly tunnel: boolean;
  /** What a connection that ends here leads to: set for its CONNECT, if any, and for each request on it. */
  readonly listed?: AskedDestination;
}

interface RouteMatcher {
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

interface OriginTarget {
  /** Starts with a slash, or is `*` (OPTIONS on the server as a whole). */
  readonly path: string;
  /** With its question mark; empty when there is none. */
  readonly query: string;
}

/** Some servers end a segment at these, too, before they resolve dot segments. */
const SEGMENT_ENDS = /\/|%2f|%5c/i;

/** Takes a target in origin-form or asterisk-form apart (RFC 9112 §3.2). */
export function splitTarget(target: string): OriginTarget {
  const mark = target.indexOf('?');
  return mark === -1
    ? { path: target, query: '' }
    : { path: target.slice(0, mark), query: target.slice(mark) };
}

/**
 * Whether a segment of `path` is `.` or `..` to anyone: percent-encoded, ended by an encoded slash or backslash, or with
 * parameters (`..;x`), which servlet containers take off first. The path decides which token is sent, so one that could
 * climb out of its prefix is to be refused, never resolved.
 */
export function hasDotSegment(path: string): boolean {
  if (!path.includes('.') && !(path.includes('%') && /%2e/i.test(path))) return false;
  return path.split(SEGMENT_ENDS).some((segment) => {
    const bare = segment.replace(/;.*$/, '').replace(/%2e/gi, '.');
    return bare === '.' || bare === '..';
  });
}
