/**
 * One rule for every listener that a browser may reach (on a shared loopback, through a port-forward). A request made
 * by another site's page shows in what the browser says of it, or in the host name, which that page has let resolve to
 * here (DNS rebinding).
 */

import { isIP } from 'node:net';
import { isLoopbackHost } from './address.ts';

/** Where a request says that it goes, and where its browser says that it comes from. */
export interface Caller {
  readonly scheme: 'http' | 'https';
  /** The host and port asked for (RFC 9110 §7.2); undefined if the request names none. */
  readonly authority: string | undefined;
  /** The value of `Origin` (RFC 6454 §7), which browsers send with requests that change something or are read across sites. */
  readonly origin: string | undefined;
  /** The value of `Sec-Fetch-Site` (Fetch Metadata). */
  readonly site: string | undefined;
}

/** `another_site`: the browser says so. `foreign_name`: the host is a name that may be somebody else's. */
export type CrossSite = 'another_site' | 'foreign_name';

/**
 * What shows that a request comes from another site; undefined if nothing does.
 * @param isOwnName whether a host that is neither an address nor loopback is known to be ours; lower-case, without
 * port.
 */
export function crossSite(caller: Caller, isOwnName: (host: string) => boolean): CrossSite | undefined {
  const { scheme, authority, origin, site } = caller;
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return 'another_site';
  if (origin !== undefined && origin.toLowerCase() !== originOf(scheme, authority)) return 'another_site';
  if (authority === undefined) return undefined;
  const host = hostOf(authority);
  return isAddressOrLoopback(host) || isOwnName(host) ? undefined : 'foreign_name';
}

/** Whether nobody can make the host mean another machine, or make a foreign name mean this one. */
export function isAddressOrLoopback(host: string): boolean {
  return isIP(host) !== 0 || isLoopbackHost(host);
}

/** The host of an authority, lower-case, without port, brackets and final dot; empty if it cannot be read. */
export function hostOf(authority: string | undefined): string {
  const [, bracketed, plain] =
    /^(?:\[([^\]]*)\]|([^:]*))(?::\d*)?$/.exec(authority?.toLowerCase() ?? '') ?? [];
  return (bracketed ?? plain ?? '').replace(/\.$/, '');
}

/** As a browser writes it: without the scheme's default port. */
function originOf(scheme: 'http' | 'https', authority: string | undefined): string | undefined {
  if (authority === undefined) return undefined;
  const ownPort = scheme === 'http' ? /:(?:80)?$/ : /:(?:443)?$/;
  return `${scheme}://${authority.toLowerCase().replace(ownPort, '')}`;
}
