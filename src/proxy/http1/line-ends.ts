/**
 * The one rule for line ends (RFC 9112 §2.2): only CRLF ends a line, and an empty line ends a head or a trailer
 * section. Followed octet by octet, so that a split between any two octets changes nothing.
 */

import { CONTROL, CR, LF } from '../http/octets.ts';
import type { RefusalReason } from './message-refused.ts';

export const IN_LINE = 0;
const AFTER_CR = 1;
export const AT_LINE_START = 2;
const AFTER_LAST_CR = 3;
/** The empty line has been read. */
export const AT_END = 4;

export type LinePosition =
  | typeof IN_LINE
  | typeof AFTER_CR
  | typeof AT_LINE_START
  | typeof AFTER_LAST_CR
  | typeof AT_END;

/** The position after one more octet, from a position before the end, or why the octet is not allowed there. */
export function nextPosition(position: LinePosition, octet: number): LinePosition | RefusalReason {
  const afterCr = position === AFTER_CR || position === AFTER_LAST_CR;
  if (octet === LF) {
    if (!afterCr) return 'bare_lf';
    return position === AFTER_CR ? AT_LINE_START : AT_END;
  }
  if (afterCr) return 'bare_cr';
  if (octet === CR) return position === AT_LINE_START ? AFTER_LAST_CR : AFTER_CR;
  return CONTROL[octet] === 1 ? 'control_octet' : IN_LINE;
}

/** The first breach of the rule in `bytes[start..end)`, which starts within a line. */
export function lineFault(bytes: Uint8Array, start: number, end: number): RefusalReason | undefined {
  let position: LinePosition = IN_LINE;
  for (let at = start; at < end && position !== AT_END; at++) {
    const next = nextPosition(position, bytes[at] as number);
    if (typeof next === 'string') return next;
    position = next;
  }
  return undefined;
}
