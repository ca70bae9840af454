import { isIP } from 'node:net';
import type { Problem } from '../platform/problems.ts';
import type { EgressProxyConfig } from './config.ts';
import type { EgressProxyEntry } from './file-schema.ts';
import { serverOf, serverUrl } from './values.ts';

const EXPECTED_URL = 'the URL of an HTTP proxy: http://host:port, and nothing behind the port';
const URL_REMEDY = 'Write http://, host and port alone; user and password are files in credentialsDir.';
const EXPECTED_HOST =
  'a host name, .suffix for all names below it, an address, or addresses such as 10.0.0.0/8';

/** The problem of a proxy that would see secrets in clear text. */
export const SEEN_BY_PROXY = {
  code: 'conflicting_settings',
  remedy: 'Have it leave over TLS, or remove egressProxy.',
} as const;

/** @param key names the setting in messages. */
export function resolveEgressProxy(
  key: string,
  entry: EgressProxyEntry | undefined,
  problems: Problem[],
): EgressProxyConfig | undefined {
  if (entry === undefined) return undefined;
  const { url: text, credentialsDir, noProxy = [] } = entry;
  if (text === undefined) {
    problems.push({ key: `${key}.url`, expected: EXPECTED_URL });
    return undefined;
  }
  const url = serverUrl.parse(text);
  if (url === undefined || url.protocol !== 'http:' || url.pathname !== '/') {
    // Not shown: a URL may contain a password.
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
