import type { RouteConfig } from '../../config/config.ts';
import type { BearerSource } from '../../token/bearer-source.ts';
import type { RouteObserver } from '../observer.ts';
import type { Refused } from '../proxy-error.ts';
import type { UpstreamStreams } from '../streams/contract.ts';
import type { TokenPlacement } from '../streams/token-placement.ts';
import type { RequestedHost } from './forward-proxy.ts';

export interface ActiveRoute {
  readonly config: RouteConfig;
  readonly matcher: RouteMatcher;
  readonly upstream: UpstreamStreams;
  /** Absent where no token is sent. */
  readonly bearer: BearerSource | undefined;
  /** Absent for `Authorization: Bearer …`. */
  readonly placement: TokenPlacement | undefined;
  readonly observer: RouteObserver;
  /** Logs that an app gets the upstream's refusal. */
  readonly reportRefusal: (refused: Refused) => void;
}

export type ActivateRoute = (config: RouteConfig, bearer: BearerSource | undefined) => ActiveRoute;

export interface Destination {
  readonly route: ActiveRoute;
  readonly target: string;
  /** For CONNECT. */
  readonly tunnel: boolean;
  /** Set for each request on a connection that ends here, and for its CONNECT. */
  readonly listed?: RequestedHost;
}

interface RouteMatcher {
  readonly host: string | undefined;
  /** Without its final slash: empty for `/`. */
  readonly prefix: string;
}

export function routeMatcher(match: RouteConfig['match']): RouteMatcher {
  return { host: match.host?.toLowerCase(), prefix: match.pathPrefix.replace(/\/+$/, '') };
}

/** Of an authority (RFC 9110 §7.2): lower-case, without port; IPv6 in brackets. */
export function hostName(authority: string): string {
  const colon = authority.lastIndexOf(':');
  const host = colon > authority.lastIndexOf(']') ? authority.slice(0, colon) : authority;
  return host.toLowerCase();
}

/**
 * The first match of host and path prefix. As in a Kubernetes Ingress, prefixes match whole segments: `/a` and `/a/`
 * match `/a`, `/a/` and `/a/x`, but not `/ab`. Only the prefix `/` matches `*` (RFC 9112 §3.2.4).
 * @param authority the request's Host.
 */
export function matchRoute<Route extends { readonly matcher: RouteMatcher }>(
  routes: readonly Route[],
  authority: string | undefined,
  path: string,
): Route | undefined {
  // `find` would allocate a function for every request.
  for (const route of routes) {
    const { host, prefix } = route.matcher;
    if (hasHost(authority, host) && hasPrefix(path, prefix)) return route;
  }
  return undefined;
}

/** Byte for byte. */
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
  readonly path: string;
  /** With its question mark, or empty. */
  readonly query: string;
}

/** Some servers end segments at encoded ones before they resolve dot segments. */
const SEGMENT_ENDS = /\/|%2f|%5c/i;

/** Takes the origin-form or asterisk-form apart (RFC 9112 §3.2). */
export function splitTarget(target: string): OriginTarget {
  const mark = target.indexOf('?');
  return mark === -1
    ? { path: target, query: '' }
    : { path: target.slice(0, mark), query: target.slice(mark) };
}

/**
 * Whether a segment is `.` or `..` to any server: percent-encoded, ended by an encoded slash or backslash, or with
 * parameters (`..;x`). Such a path could climb out of the prefix that decides its token: refuse it, never resolve it.
 */
export function hasDotSegment(path: string): boolean {
  if (!path.includes('.') && !(path.includes('%') && /%2e/i.test(path))) return false;
  return path.split(SEGMENT_ENDS).some((segment) => {
    const bare = segment.replace(/;.*$/, '').replace(/%2e/gi, '.');
    return bare === '.' || bare === '..';
  });
}
