import { isIPv6 } from 'node:net';

const NAME_AND_PORT = /^[0-9A-Za-z._-]+(?::([0-9]{1,5}))?$/;
const BRACKETED_AND_PORT = /^\[([0-9A-Fa-f:.]+)\](?::([0-9]{1,5}))?$/;

/**
 * Whether `value` is `uri-host [ ":" port ]` (RFC 9110 §7.2, RFC 3986 §3.2.2): a host name or an IPv4 address of
 * letters, digits, `.`, `-` and `_`, or an IPv6 address in brackets. Stricter than the RFC: no empty host, no empty
 * port, no user information, no percent-encoding and no sub-delimiters, on which readers of a host disagree.
 */
export function isAuthority(value: string): boolean {
  const named = NAME_AND_PORT.exec(value);
  if (named !== null) return isPort(named[1]);
  const bracketed = BRACKETED_AND_PORT.exec(value);
  return bracketed !== null && isIPv6(bracketed[1] as string) && isPort(bracketed[2]);
}

/** Whether `value` is an authority with its port, as CONNECT names its destination (RFC 9112 §3.2.3). */
export function isAuthorityWithPort(value: string): boolean {
  return /:[0-9]{1,5}$/.test(value) && isAuthority(value);
}

function isPort(digits: string | undefined): boolean {
  return digits === undefined || Number(digits) <= 65_535;
}
