/**
 * The grammar of chunk extensions (RFC 9112 §7.1.1), octet by octet: `*( ";" name [ "=" value ] )`, a value being a
 * token or a quoted string. Extensions are ignored, but not unread: what follows a lenient reader's idea of one has
 * been a request more than once. Stricter than the RFC: no whitespace around `;` and `=`, and only ASCII.
 */

import { HTAB, TOKEN } from './octets.ts';

/** After `;`. */
export const NAME_START = 0;
const NAME = 1;
const VALUE_START = 2;
const VALUE = 3;
const QUOTED = 4;
const ESCAPED = 5;
const AFTER_QUOTED = 6;

export type ExtensionPosition =
  | typeof NAME_START
  | typeof NAME
  | typeof VALUE_START
  | typeof VALUE
  | typeof QUOTED
  | typeof ESCAPED
  | typeof AFTER_QUOTED;

const SEMICOLON = 0x3b;
const EQUALS = 0x3d;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Where `octet` leads; undefined when it must not stand there. */
export function nextExtensionPosition(
  position: ExtensionPosition,
  octet: number,
): ExtensionPosition | undefined {
  switch (position) {
    case NAME_START:
      return TOKEN[octet] === 1 ? NAME : undefined;
    case NAME:
      if (octet === EQUALS) return VALUE_START;
      break;
    case VALUE_START:
      if (octet === QUOTE) return QUOTED;
      return TOKEN[octet] === 1 ? VALUE : undefined;
    case QUOTED:
      if (octet === QUOTE) return AFTER_QUOTED;
      if (octet === BACKSLASH) return ESCAPED;
      return isText(octet) ? QUOTED : undefined;
    case ESCAPED:
      return isText(octet) ? QUOTED : undefined;
    case AFTER_QUOTED:
      return octet === SEMICOLON ? NAME_START : undefined;
  }
  if (octet === SEMICOLON) return NAME_START;
  return TOKEN[octet] === 1 ? position : undefined;
}

/** Whether the line may end here. */
export function mayEndExtension(position: ExtensionPosition): boolean {
  return position === NAME || position === VALUE || position === AFTER_QUOTED;
}

function isText(octet: number): boolean {
  return octet === HTAB || (octet >= 0x20 && octet <= 0x7e);
}
