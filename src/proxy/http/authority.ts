import { isIPv6 } from 'node:net';
import { HOST_NAME, REGISTERED_NAME } from './octets.ts';

const BRACKETED = /^\[([0-9A-Fa-f:.]+)\](.*)$/s;
const COLON_AND_PORT = /^:[0-9]{0,5}$/;

/**
 * Whether `value` is `uri-host [ ":" port ]` (RFC 9110 §7.2, RFC 3986 §3.2.2), as a Host field has it: a registered name,
 * an IPv4 address, or an IPv6 address in brackets. Stricter than the RFC: no empty host, no user information and no
 * percent-encoding, on which readers of a host disagree.
 */
export function isAuthority(value: string): boolean {
  return isAuthorityOf(REGISTERED_NAME, value);
}

/** The same for a host that is to be dialled, of letters, digits, `.`, `-` and `_`: no sub-delimiters. */
export function isDialledAuthority(value: string): boolean {
  return isAuthorityOf(HOST_NAME, value);
}

/** Whether `value` is an authority with its port, as CONNECT names its destination (RFC 9112 §3.2.3). */
export function isAuthorityWithPort(value: string): boolean {
  return /:[0-9]{1,5}$/.test(value) && isDialledAuthority(value);
}

function isAuthorityOf(members: Uint8Array, value: string): boolean {
  // Nearly every authority is a name, in every request: a regular expression would allocate objects for its match.
  let nameEnd = 0;
  while (members[value.charCodeAt(nameEnd)] === 1) nameEnd++;
  if (nameEnd > 0) return nameEnd === value.length || isPortAfterColon(value.slice(nameEnd));
  const bracketed = BRACKETED.exec(value);
  return (
    bracketed !== null &&
    isIPv6(bracketed[1] as string) &&
    (bracketed[2] === '' || isPortAfterColon(bracketed[2] as string))
  );
}

function isPortAfterColon(text: string): boolean {
  return COLON_AND_PORT.test(text) && Number(text.slice(1)) <= 65_535;
}
