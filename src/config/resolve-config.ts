/** Pure: the files that are named need not exist. */

import { LOG_LEVELS } from '../platform/log/logger.ts';
import { EVERY_ADDRESS, formatAddress, isLoopbackHost, type ListenAddress } from '../platform/net/address.ts';
import type { Problem } from '../platform/problems.ts';
import type {
  AccessLogConfig,
  Config,
  CredentialConfig,
  ProxyLimits,
  RouteConfig,
  Upstream,
} from './config.ts';
import type { CredentialEntry } from './credential-schema.ts';
import { checkUnique, DEFAULT_NAME, isDoubtful, type Keyed, keyed } from './entries.ts';
import type { FileResult } from './file.ts';
import type { FileConfig, RouteEntry } from './file-schema.ts';
import type { ProxyValues } from './proxy-settings.ts';
import { checkCredentials, checkPlaces, checkSubjects, resolveCredentials } from './resolve-credentials.ts';
import { checkPlaceholders, resolvePolicy, SEEN_BY_PROXY } from './resolve-forwarding.ts';
import { resolveGateway } from './resolve-gateway.ts';
import {
  resolveCapture,
  resolveForwardProxy,
  resolveInterception,
  resolveRedirect,
  withNamedHosts,
} from './resolve-hosts.ts';
import { readValue } from './settings.ts';
import { checkListeners } from './sidecar-listeners.ts';
import { ACCESS_LOGS, formats, oneOf, protocolProblems } from './values.ts';

/** The result is right only if `problems` stays empty. */
export function resolveConfig(
  { config: read, understood }: FileResult,
  given: ProxyValues,
  problems: Problem[],
): Config {
  const file = withNamedHosts(read, given, problems);
  const routes = understood ? resolveRoutes(file, given, problems) : [];
  const forwardProxy = resolveForwardProxy(file.forwardProxy, problems);
  const capture = resolveCapture(file.capture, given, problems);
  const redirect = resolveRedirect(file.redirect, given, problems);
  const interceptors = {
    ...(forwardProxy === undefined ? {} : { forwardProxy: forwardProxy.config }),
    ...(capture === undefined ? {} : { capture: capture.config }),
    ...(redirect === undefined ? {} : { redirect: redirect.config }),
  };
  const interception = resolveInterception(file.interception, interceptors, given, problems);
  const users = [
    ...routes,
    ...(forwardProxy?.destinations ?? []),
    ...(capture?.hosts ?? []),
    ...(redirect?.hosts ?? []),
  ];
  const credentials = understood ? resolveCredentials(file, users, given, problems) : [];
  checkCredentials(file, credentials, users, problems);
  checkSubjects(credentials, users, problems);
  checkPlaces(credentials, users, problems);
  checkOutputs(credentials, problems);
  const tokenEndpoint = resolveTokenEndpoint(file.tokenEndpoint, credentials, problems);
  const accessLog = resolveAccessLog(file, given, problems);
  checkRoutes(routes, problems);
  checkPlaceholders(users, problems);
  const limits = resolveLimits(file.limits);
  const gateway = resolveGateway(file, { routes, maxInFlight: limits.maxInFlight }, problems);

  const config: Config = {
    listen: readValue(given.listen, formats.listenAddress, problems) ??
      file.listen ?? { host: '127.0.0.1', port: 15_080 },
    admin: {
      listen: readValue(given['admin-listen'], formats.listenAddress, problems) ??
        file.admin?.listen ?? { host: EVERY_ADDRESS, port: 15_081 },
      hosts:
        readValue(given['admin-hosts'], formats.hostNames, problems) ??
        file.admin?.hosts?.map((host) => host.toLowerCase()) ??
        [],
    },
    logLevel: readValue(given['log-level'], oneOf(LOG_LEVELS), problems) ?? file.logLevel ?? 'info',
    credentials: credentials.map(({ entry }) => entry),
    routes: routes.map(({ entry }) => entry),
    ...interceptors,
    ...(gateway === undefined ? {} : { gateway }),
    ...(interception === undefined ? {} : { interception }),
    ...(tokenEndpoint === undefined ? {} : { tokenEndpoint }),
    ...(accessLog === undefined ? {} : { accessLog }),
    crossSiteRequests: file.crossSiteRequests ?? 'allow',
    limits,
    shutdown: { drainTimeoutMs: file.shutdown?.drainTimeout ?? 25_000 },
  };
  checkListeners(config, given, problems);
  return config;
}

const DEFAULT_HTTP2_LIMITS: Omit<ProxyLimits['http2'], 'connectionWindowBytes'> = {
  maxStreams: 100,
  streamWindowBytes: 64 * 1024,
};

const DEFAULT_LIMITS: Omit<ProxyLimits, 'http2'> = {
  headerBytes: 64 * 1024,
  headerCount: 200,
  targetBytes: 16 * 1024,
  requestBodyBytes: 0,
  replayBytes: 64 * 1024,
  maxInFlight: 4096,
  headerTimeoutMs: 30_000,
  keepAliveTimeoutMs: 600_000,
};

const MAX_WINDOW_BYTES = 1024 ** 3;

function resolveLimits(entry: FileConfig['limits']): ProxyLimits {
  return {
    headerBytes: entry?.header ?? DEFAULT_LIMITS.headerBytes,
    headerCount: entry?.headerCount ?? DEFAULT_LIMITS.headerCount,
    targetBytes: entry?.target ?? DEFAULT_LIMITS.targetBytes,
    requestBodyBytes: entry?.requestBody ?? DEFAULT_LIMITS.requestBodyBytes,
    replayBytes: entry?.replay ?? DEFAULT_LIMITS.replayBytes,
    maxInFlight: entry?.inFlight ?? DEFAULT_LIMITS.maxInFlight,
    ...(entry?.connections === undefined ? {} : { maxConnections: entry.connections }),
    headerTimeoutMs: entry?.headerTimeout ?? DEFAULT_LIMITS.headerTimeoutMs,
    keepAliveTimeoutMs: entry?.keepAliveTimeout ?? DEFAULT_LIMITS.keepAliveTimeoutMs,
    http2: resolveHttp2Limits(entry?.http2),
  };
}

function resolveHttp2Limits(entry: NonNullable<FileConfig['limits']>['http2']): ProxyLimits['http2'] {
  const maxStreams = entry?.streams ?? DEFAULT_HTTP2_LIMITS.maxStreams;
  const streamWindowBytes = entry?.streamWindow ?? DEFAULT_HTTP2_LIMITS.streamWindowBytes;
  // Slow upstreams' streams then leave room for the others.
  const enough = Math.min(maxStreams * streamWindowBytes, MAX_WINDOW_BYTES);
  return {
    maxStreams,
    streamWindowBytes,
    connectionWindowBytes: entry?.connectionWindow ?? enough,
  };
}

/** Undefined if requests are not logged. */
function resolveAccessLog(
  file: Pick<FileConfig, 'accessLog' | 'accessLogSample'>,
  given: ProxyValues,
  problems: Problem[],
): AccessLogConfig | undefined {
  const requests = readValue(given['access-log'], oneOf(ACCESS_LOGS), problems) ?? file.accessLog ?? 'off';
  if ((file.accessLogSample ?? 1) < 1 && requests !== 'all') {
    problems.push({
      key: 'accessLogSample',
      value: String(file.accessLogSample),
      expected: `accessLog: all beside it, of which it takes a part, and not ${requests}`,
    });
  }
  return requests === 'off' ? undefined : { requests, sample: file.accessLogSample ?? 1 };
}

/**
 * `upstream` and `protocol` override the route named `default`, which `upstream` adds at the end if missing.
 */
function resolveRoutes(file: FileConfig, given: ProxyValues, problems: Problem[]): Keyed<RouteConfig>[] {
  const simple = readValue(given.upstream, formats.upstream, problems);
  const protocol = readValue(given.protocol, formats.upstreamProtocol, problems);
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
      if (!alreadyReported) problems.push({ key: `${key}.upstream`, expected: formats.upstream.expected });
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

/** Whether the token is used beyond the proxy. */
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

function checkRoutes(routes: readonly Keyed<RouteConfig>[], problems: Problem[]): void {
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

/** Any host or its own, with each prefix of its path. */
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

/** The sidecar's files before they replace the target. */
const TEMPORARY = /\/\.[^/]+\.incoming$/;

const DEFAULT_TOKEN_ENDPOINT: ListenAddress = { host: '127.0.0.1', port: 15_082 };

function checkOutputs(
  credentials: readonly Keyed<Pick<CredentialConfig, 'output'>>[],
  problems: Problem[],
): void {
  const paths = credentials.map(({ entry }) => entry.output?.file?.path);
  credentials.forEach(({ key }, index) => {
    const path = paths[index];
    if (path === undefined) return;
    if (TEMPORARY.test(path)) {
      problems.push({
        key: `${key}.output.file`,
        value: path,
        expected: 'a name other than .NAME.incoming, by which a file NAME is replaced',
      });
      return;
    }
    if (paths.indexOf(path) === index) return;
    problems.push({
      key: `${key}.output.file`,
      value: path,
      expected: 'a file that no other credential has',
      code: 'conflicting_settings',
    });
  });
}

/** Undefined if no token is handed out there. */
function resolveTokenEndpoint(
  entry: FileConfig['tokenEndpoint'],
  credentials: readonly Keyed<Pick<CredentialConfig, 'output'>>[],
  problems: Problem[],
): { readonly listen: ListenAddress } | undefined {
  const isAsked = credentials.some(({ entry: { output } }) => output?.endpoint);
  if (entry !== undefined && !isAsked) {
    const expected = 'a credential with output.endpoint: true beside it';
    problems.push({ key: 'tokenEndpoint', expected, code: 'setting_without_use' });
  }
  const listen = entry?.listen ?? DEFAULT_TOKEN_ENDPOINT;
  if (!isLoopbackHost(listen.host)) {
    problems.push({
      key: 'tokenEndpoint.listen',
      value: formatAddress(listen),
      expected: 'an address of loopback: who asks there gets tokens',
    });
  }
  return isAsked ? { listen } : undefined;
}
