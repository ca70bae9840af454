import type { RouteConfig, Upstream } from './config.ts';
import { checkUnique, DEFAULT_NAME, type Keyed, keyed } from './entries.ts';
import type { FileConfig, RouteEntry } from './file-schema.ts';
import type { Problem } from './problems.ts';
import type { ProxyValues } from './proxy-settings.ts';
import { resolvePolicy } from './resolve-policy.ts';
import { readValue } from './settings.ts';
import { upstream } from './values.ts';

/** The file's routes; `upstream` overrides that of the route named `default`, or adds it at the end. */
export function resolveRoutes(
  file: FileConfig,
  given: ProxyValues,
  problems: Problem[],
): Keyed<RouteConfig>[] {
  const simple = readValue(given.upstream, upstream, problems);
  const entries = keyed<RouteEntry>('routes', file.routes);
  if (given.upstream !== undefined && !entries.some(({ entry }) => entry.name === DEFAULT_NAME)) {
    entries.push({ key: given.upstream.key, entry: { name: DEFAULT_NAME } });
  }
  if (entries.length === 0 && file.forwardProxy === undefined) {
    problems.push({ key: 'TOKEN_SIDECAR_UPSTREAM', expected: 'a URL, or routes in the configuration file' });
  }
  return entries.flatMap(({ key, entry }) => {
    const target = (entry.name === DEFAULT_NAME ? simple : undefined) ?? entry.upstream;
    if (target === undefined) {
      const alreadyReported = entry.name === DEFAULT_NAME && given.upstream !== undefined;
      if (!alreadyReported) problems.push({ key: `${key}.upstream`, expected: upstream.expected });
      return [];
    }
    return [{ key, entry: resolveRoute(key, entry, target, problems) }];
  });
}

function resolveRoute(key: string, entry: RouteEntry, target: Upstream, problems: Problem[]): RouteConfig {
  checkProtocol(key, entry, target, problems);
  return {
    name: entry.name,
    match: {
      pathPrefix: entry.match?.pathPrefix ?? '/',
      ...(entry.match?.host === undefined ? {} : { host: entry.match.host.toLowerCase() }),
    },
    upstream: target,
    stripPrefix: entry.stripPrefix ?? false,
    ...resolvePolicy(key, entry, problems),
  };
}

/** HTTP/2 goes over TLS as `h2` and over TCP as `h2c`: the other name is a mistake about the upstream. */
function checkProtocol(key: string, { protocol }: RouteEntry, target: Upstream, problems: Problem[]): void {
  const wrong = target.protocol === 'https' ? 'h2c' : 'h2';
  if (protocol !== wrong) return;
  problems.push({
    key: `${key}.protocol`,
    value: protocol,
    expected:
      wrong === 'h2c'
        ? 'auto, http1 or h2, as the upstream is an https URL: h2c is HTTP/2 without TLS'
        : 'auto, http1 or h2c, as the upstream is an http URL: h2 is HTTP/2 over TLS',
  });
}

/** What can only be judged of all routes together. */
export function checkRoutes(routes: readonly Keyed<RouteConfig>[], problems: Problem[]): void {
  checkUnique(routes, problems);
  routes.forEach(({ key, entry: route }, index) => {
    const shadow = routes.slice(0, index).find(({ entry }) => covers(entry.match, route.match));
    if (shadow !== undefined) {
      problems.push({
        key: `${key}.match`,
        value: describeMatch(route.match),
        expected: `requests that ${shadow.key} (${shadow.entry.name}) does not take before it; the more specific route comes first`,
      });
    }
  });
}

/** Whether every request that matches `later` also matches `earlier`. */
function covers(earlier: RouteConfig['match'], later: RouteConfig['match']): boolean {
  if (earlier.host !== undefined && earlier.host !== later.host) return false;
  const prefix = earlier.pathPrefix.replace(/\/$/, '');
  const path = later.pathPrefix.replace(/\/$/, '');
  return path === prefix || path.startsWith(`${prefix}/`);
}

function describeMatch({ host, pathPrefix }: RouteConfig['match']): string {
  return `${host ?? ''}${pathPrefix}`;
}
