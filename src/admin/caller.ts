/**
 * Who may use the admin listener. Probes and Prometheus may use any host name. A browser is checked: a page of another
 * site may make it ask here, by the address of a port-forward, or by a name of its own that it lets resolve to that
 * address (DNS rebinding).
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
 * Who an answer is made for.
 * - `programs`: under any name; a browser is recognized by its fields.
 * - `people`: the caller's host name always counts, even if nothing shows a browser, since a page can leave out most of
 *   what does.
 * - `everybody`: it is public anyway, often through a front with a public name.
 */
export type Audience = 'programs' | 'people' | 'everybody';

/**
 * Why a request is refused, as a sentence for the caller; undefined if it may pass.
 * @param hosts lower-case names that the operator trusts, besides those that are always trusted.
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

/** A link that a person follows: its page cannot read the answer (Fetch Metadata, resource isolation). */
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
    // Node's fetch sends an asterisk.
    (languages !== undefined && languages !== '*') ||
    /\bMozilla\//.test(headers['user-agent'] ?? '')
  );
}

/** A name that nobody outside can make resolve to this listener. */
function isClusterName(host: string): boolean {
  return /^[a-z0-9-]+$/.test(host) || /\.(svc|cluster\.local)$/.test(host);
}
