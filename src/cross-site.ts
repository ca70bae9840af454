/**
 * One rule for every listener that a browser may reach (on a shared loopback, through a port-forward): what the page of
 * another site makes it ask is told by what the browser says of it, or by the name that the page has let resolve to here
 * (DNS rebinding).
 */

import { isIP } from 'node:net';
import { isLoopbackHost } from './config/values.ts';

/** Of a request: where it says that it is going, and where its browser says that it comes from. */
export interface Caller {
  readonly scheme: 'http' | 'https';
  /** Host and port that are asked for (RFC 9110 §7.2); undefined where none is said. */
  readonly authority: string | undefined;
  /** The value of `Origin` (RFC 6454 §7), which browsers send with what changes something or is read across sites. */
  readonly origin: string | undefined;
  /** The value of `Sec-Fetch-Site` (Fetch Metadata). */
  readonly site: string | undefined;
}

/** `another_site`: the browser says so. `foreign_name`: the host is a name that may be somebody else's. */
export type CrossSite = 'another_site' | 'foreign_name';

/**
 * What tells that a request comes from another site; undefined where nothing does.
 * @param isOwnName whether a host that is neither an address nor loopback is known to be ours; lower-case, without port.
 */
export function crossSite(caller: Caller, isOwnName: (host: string) => boolean): CrossSite | undefined {
  const { scheme, authority, origin, site } = caller;
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return 'another_site';
  if (origin !== undefined && origin.toLowerCase() !== originOf(scheme, authority)) return 'another_site';
  if (authority === undefined) return undefined;
  const host = hostOf(authority);
  return isAddressOrLoopback(host) || isOwnName(host) ? undefined : 'foreign_name';
}

/** Whether nobody can make the host mean another machine, or this one from elsewhere. */
export function isAddressOrLoopback(host: string): boolean {
  return isIP(host) !== 0 || isLoopbackHost(host);
}

/** The host of an authority, lower-case, without port, brackets and final dot; empty where it is not understood. */
export function hostOf(authority: string | undefined): string {
  const [, bracketed, plain] =
    /^(?:\[([^\]]*)\]|([^:]*))(?::\d*)?$/.exec(authority?.toLowerCase() ?? '') ?? [];
  return (bracketed ?? plain ?? '').replace(/\.$/, '');
}

/** As a browser spells it, which leaves out the scheme's own port. */
function originOf(scheme: 'http' | 'https', authority: string | undefined): string | undefined {
  if (authority === undefined) return undefined;
  const ownPort = scheme === 'http' ? /:(?:80)?$/ : /:(?:443)?$/;
  return `${scheme}://${authority.toLowerCase().replace(ownPort, '')}`;
}
