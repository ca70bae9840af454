import { isIPv6 } from 'node:net';
import { flatString } from './flat-string.ts';

export const HTAB = 0x09;
export const LF = 0x0a;
export const CR = 0x0d;
export const SP = 0x20;
export const COLON = 0x3a;

// Tables of 256, 1 for a member. No class holds CR or LF, so every run ends with its line.

const ALPHANUMERIC = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** `tchar` (RFC 9110 §5.6.2). */
export const TOKEN = classOf((octet) =>
  `!#$%&'*+-.^_\`|~${ALPHANUMERIC}`.includes(String.fromCharCode(octet)),
);

/** `tchar` of nearly every method. */
export const UPPER_CASE_TOKEN = classOf((octet) => TOKEN[octet] === 1 && !(octet >= 0x61 && octet <= 0x7a));

/**
 * Visible ASCII without `#` (RFC 9112 §3.2: no fragment on the wire) and the backslash, which some servers read as a
 * slash.
 */
export const TARGET = classOf((octet) => octet >= 0x21 && octet <= 0x7e && octet !== 0x23 && octet !== 0x5c);

const HOST_NAME = classOf((octet) => `.-_${ALPHANUMERIC}`.includes(String.fromCharCode(octet)));

/** `reg-name` (RFC 3986 §3.2.2) without percent-encoding. */
const REGISTERED_NAME = classOf((octet) =>
  `.-_~!$&'()*+,;=${ALPHANUMERIC}`.includes(String.fromCharCode(octet)),
);

/** `field-vchar`, SP and HTAB (RFC 9110 §5.5), also of a reason phrase (RFC 9112 §4). */
export const FIELD_VALUE = classOf((octet) => octet === HTAB || (octet >= 0x20 && octet !== 0x7f));

export const CONTROL = classOf(
  (octet) => (octet < 0x20 && octet !== HTAB && octet !== LF && octet !== CR) || octet === 0x7f,
);

export function endOfRun(members: Uint8Array, bytes: Uint8Array, at: number): number {
  let end = at;
  while (members[bytes[end] as number] === 1) end++;
  return end;
}

/** A CR alone is none (RFC 9112 §2.2). */
export function isLineEnd(bytes: Uint8Array, at: number): boolean {
  return bytes[at] === CR && bytes[at + 1] === LF;
}

/** `OWS` (RFC 9110 §5.6.3). */
export function isWhitespace(octet: number | undefined): boolean {
  return octet === SP || octet === HTAB;
}

/** False for the empty text. */
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
 * `uri-host [ ":" port ]` (RFC 9110 §7.2, RFC 3986 §3.2.2), as in Host. Stricter than the RFC: no empty host, user
 * information or percent-encoding, which are read differently by servers.
 */
export function isAuthority(value: string): boolean {
  return isAuthorityOf(REGISTERED_NAME, value);
}

/** No sub-delimiters. */
function isDialledAuthority(value: string): boolean {
  return isAuthorityOf(HOST_NAME, value);
}

/** A CONNECT's target (RFC 9112 §3.2.3). */
export function isAuthorityWithPort(value: string): boolean {
  return /:[0-9]{1,5}$/.test(value) && isDialledAuthority(value);
}

function isAuthorityOf(members: Uint8Array, value: string): boolean {
  // A regular expression would allocate a match for every request.
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

/** RFC 9112 §3.2. */
export type TargetForm = 'origin' | 'absolute' | 'authority' | 'asterisk';

interface AbsoluteTarget {
  /** Lower-case. */
  readonly scheme: string;
  readonly authority: string;
  /** As they came; may be empty. */
  readonly pathAndQuery: string;
}

const ABSOLUTE = /^([A-Za-z]+):\/\/([^/?]+)(.*)$/;

/** `target` must consist of TARGET; undefined if `method` does not go with it. */
export function formOf(method: string, target: string): TargetForm | undefined {
  if (method === 'CONNECT') return isAuthorityWithPort(target) ? 'authority' : undefined;
  if (target.startsWith('/')) return 'origin';
  if (target === '*') return method === 'OPTIONS' ? 'asterisk' : undefined;
  return splitAbsoluteTarget(target) === undefined ? undefined : 'absolute';
}

/** RFC 9112 §3.2.2; undefined if it is not absolute, its scheme has more than letters, or its authority is invalid. */
export function splitAbsoluteTarget(target: string): AbsoluteTarget | undefined {
  const match = ABSOLUTE.exec(target);
  if (match === null) return undefined;
  const [, scheme, authority, pathAndQuery] = match as unknown as [string, string, string, string];
  return isDialledAuthority(authority)
    ? { scheme: scheme.toLowerCase(), authority, pathAndQuery }
    : undefined;
}

const MAX_SHOWN_CHARS = 1024;

/** For logs and traces: without the query, where secrets travel, and cut. */
export function redactedPath({ target, targetForm }: { target: string; targetForm: TargetForm }): string {
  if (targetForm === 'authority') return '';
  const whole = targetForm === 'absolute' ? (splitAbsoluteTarget(target)?.pathAndQuery ?? '') : target;
  const end = whole.search(/[?#]/);
  return flatString(whole.slice(0, Math.min(MAX_SHOWN_CHARS, end === -1 ? whole.length : end)));
}
