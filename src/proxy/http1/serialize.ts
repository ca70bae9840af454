/** Latin1 strings, so that a head can leave in one write with its body's first octets. */

import { SidecarError } from '../../platform/errors.ts';
import type { Fields } from '../http/fields.ts';
import { flatString } from '../http/flat-string.ts';
import { isLasting, MadeOf } from '../http/lasting-fields.ts';

/** RFC 9112 §7.1 */
export const CHUNK_END = '\r\n';

/** latin1 keeps only the low octet of a char above U+00FF, which may end a line. */
const NOT_IN_LINE = /[\0\r\n]|[^\0-\xff]/;

/** Quiet connections keep no longer head. */
const KNOWN_CHARS = 8 * 1024;

/** The latest head of each lasting array. */
const REQUESTS = new MadeOf<{ readonly method: string; readonly target: string; readonly head: string }>();
const ANSWERS = new MadeOf<{ readonly status: number; readonly reason: string; readonly head: string }>();

/**
 * RFC 9112 §3, always HTTP/1.1 (RFC 9110 §2.5).
 * @throws {SidecarError} `internal` if anything could end a line.
 */
export function serializeRequestHead(method: string, target: string, fields: Fields): string {
  const known = REQUESTS.get(fields);
  if (known !== undefined && known.target === target && known.method === method) return known.head;
  const head = `${guarded(method)} ${guarded(target)} HTTP/1.1\r\n${fieldLines(fields)}\r\n`;
  if (isKept(fields, head)) REQUESTS.keep(fields, { method, target, head: flatString(head) });
  return head;
}

/**
 * RFC 9112 §4, always HTTP/1.1.
 * @throws {SidecarError} `internal` if anything could end a line.
 */
export function serializeResponseHead(status: number, reason: string, fields: Fields): string {
  const known = ANSWERS.get(fields);
  if (known !== undefined && known.status === status && known.reason === reason) return known.head;
  const head = `HTTP/1.1 ${status} ${guarded(reason)}\r\n${fieldLines(fields)}\r\n`;
  if (isKept(fields, head)) ANSWERS.keep(fields, { status, reason, head: flatString(head) });
  return head;
}

/** @param bytes at least one: an empty chunk would end the body. */
export function chunkStart(bytes: number): string {
  if (!Number.isSafeInteger(bytes) || bytes < 1) {
    throw new SidecarError('internal', `A chunk of ${bytes} bytes was to be sent; it must have at least one`);
  }
  return `${bytes.toString(16)}\r\n`;
}

/**
 * RFC 9112 §7.1.2
 * @throws {SidecarError} `internal` if anything could end a line.
 */
export function lastChunk(trailers: Fields): string {
  if (trailers.length === 0) return '0\r\n\r\n';
  return `0\r\n${fieldLines(trailers)}\r\n`;
}

const LINES = new MadeOf<string>();

function fieldLines(fields: Fields): string {
  const known = LINES.get(fields);
  if (known !== undefined) return known;
  const lines = makeLines(fields);
  if (isKept(fields, lines)) LINES.keep(fields, flatString(lines));
  return lines;
}

function isKept(fields: Fields, text: string): boolean {
  return text.length <= KNOWN_CHARS && isLasting(fields);
}

function makeLines(fields: Fields): string {
  if (fields.length % 2 !== 0) throw new SidecarError('internal', 'A field to be sent has no value');
  let lines = '';
  for (let at = 0; at < fields.length; at += 2) {
    // A template would first build a string of them.
    lines += guarded(fields[at] as string);
    lines += ': ';
    lines += guarded(fields[at + 1] as string);
    lines += '\r\n';
  }
  return lines;
}

/** The second line of defence against split heads. */
function guarded(part: string): string {
  if (!NOT_IN_LINE.test(part)) return part;
  throw new SidecarError(
    'internal',
    'A part of a head to be sent holds a CR, LF, NUL or a char above U+00FF',
  );
}
