/**
 * Recognizes requests of another site's page by the browser's fields or the host name: a page can make its own name
 * resolve to here (DNS rebinding).
 */

import { isIP } from 'node:net';
import { isLoopbackHost } from './address.ts';

interface Caller {
  readonly scheme: 'http' | 'https';
  /** The host and port asked for (RFC 9110 §7.2). */
  readonly authority: string | undefined;
  /** `Origin` (RFC 6454 §7). */
  readonly origin: string | undefined;
  /** `Sec-Fetch-Site` (Fetch Metadata). */
  readonly site: string | undefined;
}

/** `foreign_name`: the host may be somebody else's name. */
export type CrossSite = 'another_site' | 'foreign_name';

/**
 * Undefined if nothing shows another site.
 * @param isOwnName decides about a host that is neither an address nor loopback; lower-case, without port.
 */
export function crossSite(caller: Caller, isOwnName: (host: string) => boolean): CrossSite | undefined {
  const { scheme, authority, origin, site } = caller;
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return 'another_site';
  if (origin !== undefined && origin.toLowerCase() !== originOf(scheme, authority)) return 'another_site';
  if (authority === undefined) return undefined;
  const host = hostOf(authority);
  return isAddressOrLoopback(host) || isOwnName(host) ? undefined : 'foreign_name';
}

export function isAddressOrLoopback(host: string): boolean {
  return isIP(host) !== 0 || isLoopbackHost(host);
}

/** Lower-case, without port, brackets and final dot; empty if unreadable. */
export function hostOf(authority: string | undefined): string {
  const [, bracketed, plain] =
    /^(?:\[([^\]]*)\]|([^:]*))(?::\d*)?$/.exec(authority?.toLowerCase() ?? '') ?? [];
  return (bracketed ?? plain ?? '').replace(/\.$/, '');
}

/** Browsers leave out the scheme's default port. */
function originOf(scheme: 'http' | 'https', authority: string | undefined): string | undefined {
  if (authority === undefined) return undefined;
  const ownPort = scheme === 'http' ? /:(?:80)?$/ : /:(?:443)?$/;
  return `${scheme}://${authority.toLowerCase().replace(ownPort, '')}`;
}
