/**
 * The grammar of chunk extensions (RFC 9112 §7.1.1), octet by octet: `*( ";" name [ "=" value ] )`, a value being a
 * token or a quoted string, with whitespace around `;` and `=`. Extensions are ignored, yet parsed: where lenient
 * readers misjudged their end, requests have been smuggled more than once. Stricter than the RFC: only ASCII.
 */

import { HTAB, isWhitespace, TOKEN } from '../http/octets.ts';

/** After `;`. */
export const NAME_START = 0;
const NAME = 1;
const VALUE_START = 2;
const VALUE = 3;
const QUOTED = 4;
const ESCAPED = 5;
const AFTER_QUOTED = 6;
/** Whitespace after a name: `=` or `;` follows. */
const AFTER_NAME = 7;
/** Whitespace after a size or a value: `;` follows. */
export const BEFORE_SEMICOLON = 8;

export type ExtensionPosition =
  | typeof NAME_START
  | typeof NAME
  | typeof VALUE_START
  | typeof VALUE
  | typeof QUOTED
  | typeof ESCAPED
  | typeof AFTER_QUOTED
  | typeof AFTER_NAME
  | typeof BEFORE_SEMICOLON;

const SEMICOLON = 0x3b;
const EQUALS = 0x3d;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** The position after `octet`; undefined if `octet` is not allowed there. */
export function nextExtensionPosition(
  position: ExtensionPosition,
  octet: number,
): ExtensionPosition | undefined {
  switch (position) {
    case NAME_START:
      if (isWhitespace(octet)) return NAME_START;
      return TOKEN[octet] === 1 ? NAME : undefined;
    case NAME:
      if (TOKEN[octet] === 1) return NAME;
      return octet === EQUALS ? VALUE_START : afterWord(octet, AFTER_NAME);
    case AFTER_NAME:
      return octet === EQUALS ? VALUE_START : afterWord(octet, AFTER_NAME);
    case VALUE_START:
      if (isWhitespace(octet)) return VALUE_START;
      if (octet === QUOTE) return QUOTED;
      return TOKEN[octet] === 1 ? VALUE : undefined;
    case VALUE:
      return TOKEN[octet] === 1 ? VALUE : afterWord(octet, BEFORE_SEMICOLON);
    case QUOTED:
      if (octet === QUOTE) return AFTER_QUOTED;
      if (octet === BACKSLASH) return ESCAPED;
      return isText(octet) ? QUOTED : undefined;
    case ESCAPED:
      return isText(octet) ? QUOTED : undefined;
    case AFTER_QUOTED:
    case BEFORE_SEMICOLON:
      return afterWord(octet, BEFORE_SEMICOLON);
  }
}

function afterWord(octet: number, afterSpace: ExtensionPosition): ExtensionPosition | undefined {
  if (octet === SEMICOLON) return NAME_START;
  return isWhitespace(octet) ? afterSpace : undefined;
}

/** Whether the line may end here. @param padded whether blanks may end it. */
export function mayEndExtension(position: ExtensionPosition, padded: boolean): boolean {
  switch (position) {
    case NAME:
    case VALUE:
    case AFTER_QUOTED:
      return true;
    case AFTER_NAME:
    case BEFORE_SEMICOLON:
      return padded;
    default:
      return false;
  }
}

function isText(octet: number): boolean {
  return octet === HTAB || (octet >= 0x20 && octet <= 0x7e);
}
