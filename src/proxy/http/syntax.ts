/** The grammar of heads: octets, authorities and request targets. */

import { isIPv6 } from 'node:net';
import { ownText } from './own-text.ts';

export const HTAB = 0x09;
export const LF = 0x0a;
export const CR = 0x0d;
export const SP = 0x20;
export const COLON = 0x3a;

// The octet classes of the HTTP/1.1 grammar are tables of 256: 1 for a member. No class holds CR or LF, so every run ends
// with its line at the latest.

const ALPHANUMERIC = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** `tchar` (RFC 9110 §5.6.2). */
export const TOKEN = classOf((octet) =>
  `!#$%&'*+-.^_\`|~${ALPHANUMERIC}`.includes(String.fromCharCode(octet)),
);

/** `tchar` without lower-case letters: what nearly every method consists of. */
export const UPPER_CASE_TOKEN = classOf((octet) => TOKEN[octet] === 1 && !(octet >= 0x61 && octet <= 0x7a));

/**
 * Visible ASCII without `#`, which starts a fragment and never belongs on the wire (RFC 9112 §3.2), and without the
 * backslash, which some servers read as a slash.
 */
export const TARGET = classOf((octet) => octet >= 0x21 && octet <= 0x7e && octet !== 0x23 && octet !== 0x5c);

/** The octets of a dialled host name or an IPv4 address. */
const HOST_NAME = classOf((octet) => `.-_${ALPHANUMERIC}`.includes(String.fromCharCode(octet)));

/** `reg-name` (RFC 3986 §3.2.2) without percent-encoding. */
const REGISTERED_NAME = classOf((octet) =>
  `.-_~!$&'()*+,;=${ALPHANUMERIC}`.includes(String.fromCharCode(octet)),
);

/** `field-vchar`, SP and HTAB (RFC 9110 §5.5); a reason phrase has the same octets (RFC 9112 §4). */
export const FIELD_VALUE = classOf((octet) => octet === HTAB || (octet >= 0x20 && octet !== 0x7f));

/** Control octets that may stand nowhere in a head; CR and LF are left to the rules for line ends. */
export const CONTROL = classOf(
  (octet) => (octet < 0x20 && octet !== HTAB && octet !== LF && octet !== CR) || octet === 0x7f,
);

/** Index of the first octet from `at` on that is not in `members`. */
export function endOfRun(members: Uint8Array, bytes: Uint8Array, at: number): number {
  let end = at;
  while (members[bytes[end] as number] === 1) end++;
  return end;
}

/** Whether CRLF stands at `at`. A CR alone is never taken for it (RFC 9112 §2.2). */
export function isLineEnd(bytes: Uint8Array, at: number): boolean {
  return bytes[at] === CR && bytes[at + 1] === LF;
}

/** Whether `octet` may stand around a value (`OWS`, RFC 9110 §5.6.3). */
export function isWhitespace(octet: number | undefined): boolean {
  return octet === SP || octet === HTAB;
}

/** Whether all of `text` is in `members` and there is any. */
export function consistsOf(members: Uint8Array, text: string): boolean {
  for (let at = 0; at < text.length; at++) if (members[text.charCodeAt(at)] !== 1) return false;
  return text.length > 0;
}

function classOf(isMember: (octet: number) => boolean): Uint8Array {
  return Uint8Array.from({ length: 256 }, (_, octet) => (isMember(octet) ? 1 : 0));
}

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
function isDialledAuthority(value: string): boolean {
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

/** The four forms of a request target (RFC 9112 §3.2). */
export type TargetForm = 'origin' | 'absolute' | 'authority' | 'asterisk';

interface AbsoluteTarget {
  /** In lower case. */
  readonly scheme: string;
  /** Host and optional port as they came. */
  readonly authority: string;
  /** Path and query as they came; empty when the target ends with its authority. */
  readonly pathAndQuery: string;
}

const ABSOLUTE = /^([A-Za-z]+):\/\/([^/?]+)(.*)$/;

/** The form of `target`, all of whose octets are in TARGET, or undefined when it has none or `method` does not go with it. */
export function formOf(method: string, target: string): TargetForm | undefined {
  if (method === 'CONNECT') return isAuthorityWithPort(target) ? 'authority' : undefined;
  if (target.startsWith('/')) return 'origin';
  if (target === '*') return method === 'OPTIONS' ? 'asterisk' : undefined;
  return splitAbsoluteTarget(target) === undefined ? undefined : 'absolute';
}

/**
 * Splits an absolute-form target (RFC 9112 §3.2.2); undefined if it is not one, its scheme holds more than letters, or
 * its authority is invalid.
 */
export function splitAbsoluteTarget(target: string): AbsoluteTarget | undefined {
  const match = ABSOLUTE.exec(target);
  if (match === null) return undefined;
  const [, scheme, authority, pathAndQuery] = match as unknown as [string, string, string, string];
  return isDialledAuthority(authority)
    ? { scheme: scheme.toLowerCase(), authority, pathAndQuery }
    : undefined;
}

/** The most characters of a path that are shown; the rest is cut off. */
const MAX_SHOWN_CHARS = 1024;

/**
 * The path of a request as logs and traces may show it: without its query, where secrets travel, cut to a useful
 * length, and in memory of its own. Empty for a target that has none.
 */
export function shownPath({ target, targetForm }: { target: string; targetForm: TargetForm }): string {
  if (targetForm === 'authority') return '';
  const whole = targetForm === 'absolute' ? (splitAbsoluteTarget(target)?.pathAndQuery ?? '') : target;
  const end = whole.search(/[?#]/);
  return ownText(whole.slice(0, Math.min(MAX_SHOWN_CHARS, end === -1 ? whole.length : end)));
}
