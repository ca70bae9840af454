/**
 * Who may use the admin listener. A page of another site may make a browser ask here, by a port-forward's address or
 * DNS rebinding.
 */

import type { IncomingHttpHeaders } from 'node:http';
import { type CrossSite, crossSite, hostOf, isAddressOrLoopback } from '../platform/net/cross-site.ts';

const REASONS: Readonly<Record<CrossSite, string>> = {
  another_site: 'requests that the page of another site makes are refused',
  foreign_name:
    'come here by localhost, an IP address, a name inside the cluster, or one that admin.hosts lists',
};

const BROWSER_FIELDS = ['origin', 'referer', 'upgrade-insecure-requests', 'sec-fetch-site', 'sec-ch-ua'];

/**
 * - `programs`: any host name; browsers are recognized by their fields.
 * - `people`: the host name is always checked: a page can leave out most fields.
 * - `everybody`: public anyway.
 */
export type Audience = 'programs' | 'people' | 'everybody';

/**
 * A sentence; undefined if the request may pass.
 * @param hosts lower-case names that the operator trusts.
 */
export function whyRefused(
  method: string | undefined,
  headers: IncomingHttpHeaders,
  audience: Audience,
  hosts: ReadonlySet<string> = NO_HOSTS,
): string | undefined {
  const changes = method !== 'GET' && method !== 'HEAD';
  if (audience === 'everybody' && !changes) return undefined;
  if (changes && !isAddressOrLoopback(hostOf(headers.host))) {
    return 'what changes something is asked for by localhost or an IP address';
  }
  const watchesName = audience === 'people' || isBrowser(headers);
  const reason = crossSite(
    {
      scheme: 'http',
      authority: headers.host,
      origin: headers.origin,
      site: isOpened(method, headers) ? undefined : headers['sec-fetch-site'],
    },
    (host) => !watchesName || isClusterName(host) || hosts.has(host),
  );
  return reason === undefined ? undefined : REASONS[reason];
}

const NO_HOSTS: ReadonlySet<string> = new Set();

/** The page that links cannot read the answer (Fetch Metadata, resource isolation). */
function isOpened(method: string | undefined, headers: IncomingHttpHeaders): boolean {
  return (
    method === 'GET' &&
    headers['sec-fetch-mode'] === 'navigate' &&
    headers['sec-fetch-dest'] === 'document' &&
    headers.origin === undefined
  );
}

function isBrowser(headers: IncomingHttpHeaders): boolean {
  const languages = headers['accept-language'];
  return (
    BROWSER_FIELDS.some((name) => headers[name] !== undefined) ||
    (languages !== undefined && languages !== '*') ||
    /\bMozilla\//.test(headers['user-agent'] ?? '')
  );
}

/** Nobody outside can make it resolve to here. */
function isClusterName(host: string): boolean {
  return /^[a-z0-9-]+$/.test(host) || /\.(svc|cluster\.local)$/.test(host);
}
