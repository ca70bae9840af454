/** What routes, destinations and hosts have in common. */

import { isIP } from 'node:net';
import type { Problem } from '../platform/problems.ts';
import type { EgressProxyConfig, ForwardingPolicy, Injection, RouteTimeouts, TlsConfig } from './config.ts';
import type { CredentialEntry } from './credential-schema.ts';
import { DEFAULT_NAME, type Keyed } from './entries.ts';
import type {
  AllowedDestinationEntry,
  CapturedHostEntry,
  InjectionEntry,
  RouteEntry,
} from './file-schema.ts';
import { formats, serverOf } from './values.ts';

export const DEFAULT_TIMEOUTS: RouteTimeouts = { connectMs: 5000, responseMs: 60_000, idleMs: 300_000 };

export function resolvePolicy(
  key: string,
  entry: RouteEntry | AllowedDestinationEntry | CapturedHostEntry,
  problems: Problem[],
): ForwardingPolicy {
  const egressProxy = resolveEgressProxy(`${key}.egressProxy`, entry.egressProxy, problems);
  const inject = resolveInjections(`${key}.inject`, entry.inject, problems);
  return {
    credential: entry.credential ?? DEFAULT_NAME,
    ...(inject === undefined ? {} : { inject }),
    existingAuthorization: entry.existingAuthorization ?? 'replace',
    whenTokenUnavailable: entry.whenTokenUnavailable ?? 'fail',
    retryOn401: entry.retryOn401 ?? true,
    timeouts: {
      connectMs: entry.timeouts?.connect ?? DEFAULT_TIMEOUTS.connectMs,
      responseMs: entry.timeouts?.response ?? DEFAULT_TIMEOUTS.responseMs,
      idleMs: entry.timeouts?.idle ?? DEFAULT_TIMEOUTS.idleMs,
    },
    tls: resolveTls(`${key}.tls`, entry.tls, problems),
    ...(egressProxy === undefined ? {} : { egressProxy }),
    protocol: entry.protocol ?? 'auto',
  };
}

const AUTHORIZATION = 'Authorization';
const BEARER = 'Bearer';

/** They frame or route a message, apply to one hop, belong to the sidecar, or hold several values. */
const NOT_FOR_TOKENS =
  /^(?:connection|cookie|expect|forwarded|host|keep-alive|max-forwards|te|trailer|transfer-encoding|upgrade|via|(?:content|if|proxy|sec|token-sidecar|access-control)-.*)$/;

/** Undefined for `Authorization: Bearer`. @param key for messages. */
function resolveInjections(
  key: string,
  entry: InjectionEntry | readonly InjectionEntry[] | undefined,
  problems: Problem[],
): readonly Injection[] | undefined {
  if (entry === undefined) return undefined;
  const isList = Array.isArray(entry);
  const entries: readonly InjectionEntry[] = isList ? entry : [entry as InjectionEntry];
  const keyed = entries.flatMap((one, index) => {
    const oneKey = isList ? `${key}[${index}]` : key;
    const resolved = resolveInjection(oneKey, one, problems);
    return resolved === undefined ? [] : [{ key: oneKey, entry: resolved }];
  });
  checkPlaces(keyed, problems);
  const injections = keyed.map((one) => one.entry);
  return injections.every(isUsual) ? undefined : injections;
}

function isUsual(injection: Injection): boolean {
  if (injection.into !== 'header') return false;
  return injection.header.toLowerCase() === 'authorization' && injection.scheme === BEARER;
}

function resolveInjection(key: string, entry: InjectionEntry, problems: Problem[]): Injection | undefined {
  const { header, scheme, placeholder, query } = entry;
  if (query !== undefined) {
    refuse(key, entry, ['header', 'scheme', 'placeholder'], 'nothing beside query', problems);
    return { into: 'query', parameter: query };
  }
  if (header === undefined && scheme === undefined && placeholder === undefined) {
    // Reported and removed if it was wrong.
    if (problems.some((problem) => problem.key.startsWith(`${key}.`))) return undefined;
    problems.push({
      key,
      expected: 'header, placeholder or query',
      code: 'missing_value',
      remedy: 'Say where the token goes, or remove inject: without it that is Authorization: Bearer.',
    });
    return undefined;
  }
  if (header !== undefined && NOT_FOR_TOKENS.test(header.toLowerCase())) {
    problems.push({ key: `${key}.header`, value: header, expected: 'a header that may hold a token alone' });
  }
  if (placeholder !== undefined) {
    refuse(key, entry, ['scheme'], 'nothing beside placeholder: the app writes the scheme', problems);
    return { into: 'placeholder', header: header ?? AUTHORIZATION, placeholder };
  }
  const name = header ?? AUTHORIZATION;
  const usual = name.toLowerCase() === 'authorization' ? BEARER : '';
  const said = scheme ?? usual;
  return { into: 'header', header: name, ...(said === '' ? {} : { scheme: said }) };
}

function refuse(
  key: string,
  entry: InjectionEntry,
  names: readonly (keyof InjectionEntry)[],
  expected: string,
  problems: Problem[],
): void {
  for (const name of names) {
    const value = entry[name];
    if (value !== undefined)
      problems.push({ key: `${key}.${name}`, value, expected, code: 'conflicting_settings' });
  }
}

/** Two tokens there would give two identities. */
function checkPlaces(injections: readonly Keyed<Injection>[], problems: Problem[]): void {
  injections.forEach(({ key, entry }, index) => {
    const earlier = injections.slice(0, index).find((one) => placeOf(one.entry) === placeOf(entry));
    if (earlier === undefined) return;
    const [name, value] = entry.into === 'query' ? ['query', entry.parameter] : ['header', entry.header];
    const expected = `another place than that of ${earlier.key}`;
    problems.push({ key: `${key}.${name}`, value, expected, code: 'conflicting_settings' });
  });
}

function placeOf(injection: Injection): string {
  if (injection.into === 'query') return `query ${injection.parameter.toLowerCase()}`;
  return `header ${injection.header.toLowerCase().replaceAll('_', '-')}`;
}

/** A placeholder within another would be found in its place, too. */
export function checkPlaceholders(
  users: readonly Keyed<{ readonly inject?: readonly Injection[] }>[],
  problems: Problem[],
): void {
  const all = users.flatMap(({ key, entry: { inject = [] } }) =>
    inject.flatMap((one) => (one.into === 'placeholder' ? [{ key, text: one.placeholder }] : [])),
  );
  for (const { key, text } of all) {
    const longer = all.find((other) => other.text !== text && other.text.includes(text));
    if (longer === undefined) continue;
    problems.push({
      key: `${key}.inject.placeholder`,
      value: text,
      expected: `a text that is no part of another placeholder (${longer.text})`,
    });
  }
}

const EXPECTED_URL = 'the URL of an HTTP proxy: http://host:port, and nothing behind the port';
const URL_REMEDY = 'Write http://, host and port alone; user and password are files in credentialsDir.';
const EXPECTED_HOST =
  'a host name, .suffix for all names below it, an address, or addresses such as 10.0.0.0/8';

export const SEEN_BY_PROXY = {
  code: 'conflicting_settings',
  remedy: 'Have it leave over TLS, or remove egressProxy.',
} as const;

/** @param key for messages. */
export function resolveEgressProxy(
  key: string,
  entry: CredentialEntry['egressProxy'],
  problems: Problem[],
): EgressProxyConfig | undefined {
  if (entry === undefined) return undefined;
  const { url: text, credentialsDir, noProxy = [] } = entry;
  if (text === undefined) {
    problems.push({ key: `${key}.url`, expected: EXPECTED_URL });
    return undefined;
  }
  const url = formats.serverUrl.parse(text);
  if (url === undefined || url.protocol !== 'http:' || url.pathname !== '/') {
    // A URL may contain a password.
    problems.push({ key: `${key}.url`, expected: EXPECTED_URL, code: 'invalid_url', remedy: URL_REMEDY });
    return undefined;
  }
  noProxy.forEach((host, index) => {
    if (isHostPattern(host)) return;
    problems.push({ key: `${key}.noProxy[${index}]`, value: host, expected: EXPECTED_HOST });
  });
  const { host, port } = serverOf(url);
  return {
    host,
    port,
    ...(credentialsDir === undefined ? {} : { credentialsDirectory: credentialsDir }),
    noProxy: noProxy.map((host) => host.toLowerCase()),
  };
}

function isHostPattern(text: string): boolean {
  const [address = '', prefix, ...others] = text.split('/');
  const family = isIP(address);
  if (family === 0) return /^\.?[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?$/.test(text);
  if (prefix === undefined) return true;
  return others.length === 0 && /^\d{1,3}$/.test(prefix) && Number(prefix) <= (family === 6 ? 128 : 32);
}

export function resolveTls(key: string, entry: RouteEntry['tls'], problems: Problem[]): TlsConfig {
  const tls: TlsConfig = {
    ...(entry?.caFile === undefined ? {} : { caFile: entry.caFile }),
    ...(entry?.certFile === undefined ? {} : { certFile: entry.certFile }),
    ...(entry?.keyFile === undefined ? {} : { keyFile: entry.keyFile }),
    ...(entry?.serverName === undefined ? {} : { serverName: entry.serverName }),
  };
  if ((tls.certFile === undefined) !== (tls.keyFile === undefined)) {
    problems.push({ key, expected: 'certFile and keyFile together', code: 'incomplete_tls' });
  }
  return tls;
}
