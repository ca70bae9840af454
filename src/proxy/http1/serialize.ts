/**
 * Heads and chunk framing as octets to be sent. Heads are latin1 strings, one char an octet, so that a head can leave
 * in one write with the first octets of its body.
 */

import { SidecarError } from '../../errors.ts';

/** Name, value, name, value, … */
type Fields = readonly string[];

/** Follows the data of every chunk (RFC 9112 §7.1). */
export const CHUNK_END = '\r\n';

const NOT_LATIN1 = /[^\0-\xff]/;

/**
 * A request head (RFC 9112 §3). The version is always this proxy's own, HTTP/1.1 (RFC 9110 §2.5).
 * @throws {SidecarError} `internal` when anything in it could end a line.
 */
export function serializeRequestHead(method: string, target: string, fields: Fields): string {
  return guarded(`${method} ${target} HTTP/1.1\r\n${fieldLines(fields)}\r\n`, fields.length / 2 + 2);
}

/**
 * A response head (RFC 9112 §4), with the version as in `serializeRequestHead`.
 * @throws {SidecarError} `internal` when anything in it could end a line.
 */
export function serializeResponseHead(status: number, reason: string, fields: Fields): string {
  return guarded(`HTTP/1.1 ${status} ${reason}\r\n${fieldLines(fields)}\r\n`, fields.length / 2 + 2);
}

/** What goes before the data of a chunk of `bytes` octets, which must be at least one: none would end the body. */
export function chunkStart(bytes: number): string {
  if (!Number.isSafeInteger(bytes) || bytes < 1) {
    throw new SidecarError('internal', `A chunk of ${bytes} bytes was to be sent; it must have at least one`);
  }
  return `${bytes.toString(16)}\r\n`;
}

/**
 * The end of a chunked body (RFC 9112 §7.1.2): last chunk, trailer fields, empty line.
 * @throws {SidecarError} `internal` when anything in it could end a line.
 */
export function lastChunk(trailers: Fields): string {
  if (trailers.length === 0) return '0\r\n\r\n';
  return guarded(`0\r\n${fieldLines(trailers)}\r\n`, trailers.length / 2 + 2);
}

function fieldLines(fields: Fields): string {
  let lines = '';
  for (let at = 0; at < fields.length; at += 2) lines += `${fields[at]}: ${fields[at + 1]}\r\n`;
  return lines;
}

/**
 * The second line of defence against split heads: whatever its parts held, the text has the line ends that it was
 * built with and no others, no NUL, and no char above 0xFF, of which latin1 would keep the lower octet alone (U+010A
 * would become a LF).
 */
function guarded(text: string, lines: number): string {
  if (
    countOf('\n', text) !== lines ||
    countOf('\r', text) !== lines ||
    text.includes('\0') ||
    NOT_LATIN1.test(text)
  ) {
    throw new SidecarError(
      'internal',
      'A head or trailer to be sent holds a CR, LF, NUL or a char above U+00FF',
    );
  }
  return text;
}

function countOf(char: string, text: string): number {
  let count = 0;
  for (let at = text.indexOf(char); at !== -1; at = text.indexOf(char, at + 1)) count++;
  return count;
}
