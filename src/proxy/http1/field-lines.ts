import { COLON, endOfRun, FIELD_VALUE, HTAB, isLineEnd, isWhitespace, TOKEN } from '../http/octets.ts';
import type { RefusalReason } from './message-refused.ts';

/**
 * Field lines as they came: name, value, name, value …; order, case and repetitions kept, whitespace around values
 * taken off. Every octet above 0x7F is one char of the same code (latin1).
 */
export type FieldLines = readonly string[];

const FRAMING = /^(?:content-length|transfer-encoding)$/i;

/**
 * Parses the field lines of a head or a trailer section (RFC 9112 §5).
 *
 * @param bytes holds the section and the empty line that ends it, both with every line ended by CRLF
 * @param textStart index in `bytes` of the first char of `text`
 * @param text the section, or a head around it, as latin1
 * @param at index in `bytes` of the first field line, or of the empty line
 * @param maxFields more fields than this are refused
 */
export function parseFieldLines(
  bytes: Uint8Array,
  textStart: number,
  text: string,
  at: number,
  maxFields: number,
): string[] | RefusalReason {
  const fields: string[] = [];
  let lineStart = at;
  while (!isLineEnd(bytes, lineStart)) {
    const nameEnd = endOfRun(TOKEN, bytes, lineStart);
    if (nameEnd === lineStart || bytes[nameEnd] !== COLON) {
      return isWhitespace(bytes[lineStart]) ? 'folded_line' : 'name_malformed';
    }
    let valueStart = nameEnd + 1;
    while (isWhitespace(bytes[valueStart])) valueStart++;
    const lineEnd = endOfRun(FIELD_VALUE, bytes, valueStart);
    // Or a faulty line end, but the head reader reports those before parsing gets here.
    if (!isLineEnd(bytes, lineEnd)) return 'control_octet';
    let valueEnd = lineEnd;
    while (valueEnd > valueStart && isWhitespace(bytes[valueEnd - 1])) valueEnd--;

    if (fields.length === maxFields * 2) return 'too_many_fields';
    const name = text.slice(lineStart - textStart, nameEnd - textStart);
    // Legal, but llhttp reads `chunked` with a tab after it as another coding, and others differ on one before it.
    if (hasTab(bytes, nameEnd, valueStart) || hasTab(bytes, valueEnd, lineEnd)) {
      if (FRAMING.test(name)) return 'framing_tab';
    }
    fields.push(name, text.slice(valueStart - textStart, valueEnd - textStart));
    lineStart = lineEnd + 2;
  }
  return fields;
}

function hasTab(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (bytes[at] === HTAB) return true;
  return false;
}
