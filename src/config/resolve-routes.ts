import type { Problem } from '../platform/problems.ts';
import type { RouteConfig, Upstream } from './config.ts';
import type { CredentialEntry } from './credential-schema.ts';
import { checkUnique, DEFAULT_NAME, isDoubtful, type Keyed, keyed } from './entries.ts';
import type { FileConfig, RouteEntry } from './file-schema.ts';
import type { ProxyValues } from './proxy-settings.ts';
import { resolvePolicy, SEEN_BY_PROXY } from './resolve-policy.ts';
import { readValue } from './settings.ts';
import { protocolProblems, upstream, upstreamProtocol } from './values.ts';

/**
 * The file's routes. `upstream` and `protocol` override those of the route named `default`; if the file has none,
 * `upstream` adds it at the end.
 */
export function resolveRoutes(
  file: FileConfig,
  given: ProxyValues,
  problems: Problem[],
): Keyed<RouteConfig>[] {
  const simple = readValue(given.upstream, upstream, problems);
  const protocol = readValue(given.protocol, upstreamProtocol, problems);
  const entries = keyed<RouteEntry>('routes', file.routes);
  if (given.upstream !== undefined && !entries.some(isDefault)) {
    entries.push({ key: given.upstream.key, entry: { name: DEFAULT_NAME } });
  }
  const others = [
    file.forwardProxy,
    file.capture,
    file.redirect,
    given['capture-hosts'],
    given['redirect-hosts'],
  ];
  const hasOtherUse =
    others.some((other) => other !== undefined) ||
    (file.credentials ?? []).some(
      // An output that was not understood counts as one.
      (entry, index) => givesOut(entry) || isDoubtful(problems, `credentials[${index}]`, 'output'),
    );
  if (entries.length === 0 && !hasOtherUse) {
    problems.push({
      key: 'TOKEN_SIDECAR_UPSTREAM',
      expected: 'a URL, or routes in the configuration file',
      instead: [
        'routes',
        'forwardProxy',
        'capture',
        'redirect',
        'TOKEN_SIDECAR_CONFIG',
        'TOKEN_SIDECAR_HOSTS',
        'TOKEN_SIDECAR_CAPTURE_HOSTS',
        'TOKEN_SIDECAR_REDIRECT_HOSTS',
      ],
    });
  } else if (given.protocol !== undefined && !entries.some(isDefault)) {
    const expected =
      'a route named default, or an upstream beside it: each other route says its own protocol';
    problems.push({ key: given.protocol.key, value: given.protocol.text, expected, code: 'ignored_setting' });
  }
  return entries.flatMap((keyedEntry) => {
    const { key, entry } = keyedEntry;
    const target = (isDefault(keyedEntry) ? simple : undefined) ?? entry.upstream;
    if (target === undefined) {
      const alreadyReported = isDefault(keyedEntry) && given.upstream !== undefined;
      if (!alreadyReported) problems.push({ key: `${key}.upstream`, expected: upstream.expected });
      return [];
    }
    const isGiven = isDefault(keyedEntry) && protocol !== undefined;
    const spoken = isGiven ? { ...entry, protocol } : entry;
    const spokenKey = isGiven && given.protocol !== undefined ? given.protocol.key : `${key}.protocol`;
    problems.push(...protocolProblems(spokenKey, spoken.protocol, target));
    return [{ key, entry: resolveRoute(key, spoken, target, problems) }];
  });
}

function isDefault({ entry }: Keyed<RouteEntry>): boolean {
  return entry.name === DEFAULT_NAME;
}

/** Whether its token serves more than requests through the proxy. */
function givesOut({ output }: CredentialEntry): boolean {
  return output?.file !== undefined || output?.endpoint === true;
}

function resolveRoute(key: string, entry: RouteEntry, target: Upstream, problems: Problem[]): RouteConfig {
  if (entry.egressProxy !== undefined && target.protocol !== 'https') {
    problems.push({
      key: `${key}.egressProxy`,
      expected: 'an https upstream beside it: the proxy would see the token',
      ...SEEN_BY_PROXY,
    });
  }
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

/** Checks that need all routes together. */
export function checkRoutes(routes: readonly Keyed<RouteConfig>[], problems: Problem[]): void {
  checkUnique(routes, problems);
  const understood = routes.filter(({ key }) => !isDoubtful(problems, key, 'match'));
  const earlier = new Map<string, { readonly at: number; readonly route: Keyed<RouteConfig> }>();
  understood.forEach((route, at) => {
    const { key, entry } = route;
    const [shadow] = coveringMatches(entry.match)
      .flatMap((match) => earlier.get(match) ?? [])
      .sort((one, other) => one.at - other.at);
    if (shadow !== undefined) {
      problems.push({
        key: `${key}.match`,
        value: describeMatch(entry.match),
        expected: `requests that ${shadow.route.key} (${shadow.route.entry.name}) does not take before it; the more specific route comes first`,
        code: 'unreachable_route',
      });
    }
    const own = matchOf(entry.match.host, withoutSlash(entry.match.pathPrefix));
    if (!earlier.has(own)) earlier.set(own, { at, route });
  });
}

/** Every match that covers all requests of this one, itself included: any host or its own, with each prefix of its path. */
function coveringMatches({ host, pathPrefix }: RouteConfig['match']): string[] {
  const path = withoutSlash(pathPrefix);
  const prefixes = [path];
  for (let end = path.indexOf('/'); end !== -1; end = path.indexOf('/', end + 1)) {
    prefixes.push(path.slice(0, end));
  }
  const hosts = host === undefined ? [undefined] : [undefined, host];
  return hosts.flatMap((one) => prefixes.map((prefix) => matchOf(one, prefix)));
}

function matchOf(host: string | undefined, prefix: string): string {
  return JSON.stringify([host ?? null, prefix]);
}

function withoutSlash(pathPrefix: string): string {
  return pathPrefix.endsWith('/') ? pathPrefix.slice(0, -1) : pathPrefix;
}

function describeMatch({ host, pathPrefix }: RouteConfig['match']): string {
  return `${host ?? ''}${pathPrefix}`;
}
