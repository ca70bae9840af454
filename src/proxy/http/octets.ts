/**
 * The octet classes of the HTTP/1.1 grammar as 256-entry tables: 1 for a member. No class holds CR or LF, so every run
 * ends with its line at the latest.
 */

export const HTAB = 0x09;
export const LF = 0x0a;
export const CR = 0x0d;
export const SP = 0x20;
export const COLON = 0x3a;

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
export const HOST_NAME = classOf((octet) => `.-_${ALPHANUMERIC}`.includes(String.fromCharCode(octet)));

/** `reg-name` (RFC 3986 §3.2.2) without percent-encoding. */
export const REGISTERED_NAME = classOf((octet) =>
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
