/** Refuses requests that web pages make a browser send to the proxy, which would add a token (`crossSiteRequests: refuse`). */

import type { RouteConfig } from '../../config/config.ts';
import { SidecarError } from '../../platform/errors.ts';
import type { ListenAddress } from '../../platform/net/address.ts';
import { type Caller, type CrossSite, crossSite, hostOf } from '../../platform/net/cross-site.ts';
import { fieldValues } from '../http/fields.ts';
import { splitAbsoluteTarget } from '../http/target-form.ts';
import type { Destination } from '../routing/destination.ts';
import type { IncomingRequest } from '../streams/message.ts';

const DETAILS: Readonly<Record<CrossSite, string>> = {
  another_site: 'Sec-Fetch-Site or Origin says that the page of another site makes the request',
  foreign_name: 'the Host is a name that no route has; localhost and IP addresses are taken, too',
};

/** The names that the configuration gives the listener and its upstreams: no outsider decides what they resolve to. */
export function ownNames(routes: readonly RouteConfig[], listen: ListenAddress): ReadonlySet<string> {
  const names = routes.flatMap(({ match, upstream }) => [match.host, upstream.host]);
  // An address without brackets parses as no host and can be left out.
  return new Set([listen.host, ...names].map(hostOf).filter((name) => name !== ''));
}

/**
 * Refuses a request made by a page of another site. Exempt are CONNECT, which a page cannot make and which carries no
 * token, and hosts that get no token. The absolute form comes only from a browser that uses us as its proxy; there the
 * list says which names are good.
 * @throws {SidecarError} `cross_site_request`.
 */
export function refuseCrossSite(
  head: Pick<IncomingRequest, 'fields' | 'host' | 'target' | 'targetForm'>,
  { route, tunnel, listed }: Destination,
  names: ReadonlySet<string>,
): void {
  if (tunnel || route.bearer === undefined) return;
  const absolute = head.targetForm === 'absolute' ? splitAbsoluteTarget(head.target) : undefined;
  const caller: Caller = {
    scheme: (listed ?? absolute)?.scheme === 'https' ? 'https' : 'http',
    authority: absolute?.authority ?? head.host,
    origin: onlyValue(head, 'origin'),
    site: onlyValue(head, 'sec-fetch-site'),
  };
  const reason = crossSite(caller, (host) => (listed ?? absolute) !== undefined || names.has(host));
  if (reason !== undefined) throw new SidecarError('cross_site_request', DETAILS[reason]);
}

/** Repeated fields join into one list, which equals none of the good values. */
function onlyValue({ fields }: Pick<IncomingRequest, 'fields'>, name: string): string | undefined {
  const values = fieldValues(fields, name);
  return values.length === 0 ? undefined : values.join(', ');
}
