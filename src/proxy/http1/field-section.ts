/** The field section of a head (RFC 9112 §5): its lines, those that decide how a connection is read on, and sections that come again. */

import { isNamed, parseContentLength } from '../http/fields.ts';
import { makeLasting } from '../http/lasting-fields.ts';
import {
  COLON,
  consistsOf,
  endOfRun,
  FIELD_VALUE,
  HTAB,
  isAuthority,
  isLineEnd,
  isWhitespace,
  TOKEN,
} from '../http/syntax.ts';
import type { MessageKind, RefusalReason } from './message-refused.ts';

/** Limits of a head, and likewise of a trailer section. */
export interface HeadLimits {
  readonly headerBytes: number;
  /** Fields. */
  readonly headerCount: number;
  readonly targetBytes: number;
}

/** Where a field section lies, and what it takes to read it. */
interface FieldSectionSource {
  readonly bytes: Buffer;
  /** Index of the first field line, or of the empty line. */
  readonly start: number;
  /** Index after the empty line. */
  readonly end: number;
  readonly minorVersion: 0 | 1;
  /** More fields than this are refused. */
  readonly maxFields: number;
  /** The previous section, where this one may reuse its fields. */
  readonly known: KnownSection | undefined;
}

/** Reads the field section of a head, with its control fields. */
export function readFieldSection(kind: MessageKind, source: FieldSectionSource): ReadSection | RefusalReason {
  const { bytes, start, end, minorVersion, maxFields, known } = source;
  const text = bytes.toString('latin1', start, end);
  const same = known?.get(text);
  if (same !== undefined) return same;

  const fields = parseFieldLines(bytes, start, text, start, maxFields);
  if (typeof fields === 'string') return fields;
  const control = readControlFields(kind, fields, minorVersion);
  if (typeof control === 'string') return control;
  const section = { fields, control };
  known?.keep(text, section);
  return section;
}

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

/**
 * The fields that decide how a connection is read on: Content-Length, Transfer-Encoding, Connection and Host. They are
 * read once, here, with one meaning; whatever another reader could take differently is refused, and so are names that
 * equal theirs where names become variables (CGI, WSGI: `-` and `_` are one).
 */
export interface ControlFields {
  /** Octets, if Content-Length was there. */
  readonly contentLength: number | undefined;
  /** Whether `Transfer-Encoding: chunked` was there; never together with `contentLength`. */
  readonly chunked: boolean;
  /** Value of a request's one Host field; in an answer the field has no meaning and is ignored. */
  readonly host: string | undefined;
  /** Options of all Connection fields, in lower case (RFC 9110 §7.6.1), and `close` if Proxy-Connection has it. */
  readonly connectionOptions: readonly string[];
}

const NO_OPTIONS: readonly string[] = [];
const KEEP_ALIVE: readonly string[] = ['keep-alive'];
const CLOSE: readonly string[] = ['close'];

/**
 * Reads the control fields of a message of version HTTP/1.`minorVersion`, and normalises the length in `fields`: a
 * repetition in an answer and leading zeros are removed.
 */
function readControlFields(
  kind: MessageKind,
  fields: string[],
  minorVersion: 0 | 1,
): ControlFields | RefusalReason {
  let contentLength: number | undefined;
  let chunked = false;
  let host: string | undefined;
  let connectionOptions = NO_OPTIONS;

  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] as string;
    // The length rules out almost every field before a string is made for the comparison.
    switch (name.length) {
      case 4:
        if (kind === 'request' && isNamed(name, 'host')) {
          if (host !== undefined) return 'host_repeated';
          host = fields[at + 1] as string;
          if (!isAuthority(host)) return 'host_malformed';
        }
        break;
      case 10:
        if (isNamed(name, 'connection')) {
          const options = parseConnectionOptions(fields[at + 1] as string);
          if (options === undefined) return 'connection_malformed';
          connectionOptions = connectionOptions.length === 0 ? options : [...connectionOptions, ...options];
        }
        break;
      case 14:
        if (isNamed(name, 'content-length')) {
          const length = parseContentLength(fields[at + 1] as string);
          if (length === undefined) return 'length_malformed';
          if (contentLength !== undefined) {
            // Chained servers may send it twice (RFC 9110 §8.6). A request that does is crafted to be read in two ways.
            if (kind === 'request' || length !== contentLength) return 'length_repeated';
            fields.splice(at, 2);
            at -= 2;
            break;
          }
          contentLength = length;
          fields[at + 1] = String(length);
        } else if (isNamed(name, 'content_length')) {
          return 'framing_lookalike';
        }
        break;
      case 16:
        // Non-standard (RFC 9112 §C.2.2), but some readers close on it; closing does no harm to the others.
        if (isNamed(name, 'proxy-connection')) {
          const options = parseConnectionOptions(fields[at + 1] as string);
          if (options === undefined) return 'connection_malformed';
          if (options.includes('close')) connectionOptions = [...connectionOptions, ...CLOSE];
        }
        break;
      case 17:
        if (isNamed(name, 'transfer-encoding')) {
          if (chunked || (fields[at + 1] as string).toLowerCase() !== 'chunked') return 'coding_unknown';
          chunked = true;
        } else if (isNamed(name, 'transfer_encoding')) {
          return 'framing_lookalike';
        }
        break;
    }
  }

  if (chunked && contentLength !== undefined) return 'length_with_coding';
  if (chunked && minorVersion === 0) return 'coding_in_http_1_0';
  return { contentLength, chunked, host, connectionOptions };
}

/** Whether they say that octets of a body follow. */
export function announcesBody({ chunked, contentLength = 0 }: ControlFields): boolean {
  return chunked || contentLength > 0;
}

/** `#connection-option` (RFC 9110 §7.6.1, §5.6.1); undefined when it is not that. */
function parseConnectionOptions(value: string): readonly string[] | undefined {
  const lower = value.toLowerCase();
  if (lower === 'keep-alive') return KEEP_ALIVE;
  if (lower === 'close') return CLOSE;
  const options: string[] = [];
  for (const element of lower.split(',')) {
    const option = withoutWhitespace(element);
    if (option === '') continue;
    if (!consistsOf(TOKEN, option)) return undefined;
    options.push(option);
  }
  return options;
}

/** Strips SP and HTAB from both ends; `trim` strips more, and a regular expression takes quadratic time. */
function withoutWhitespace(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isWhitespace(text.charCodeAt(start))) start++;
  while (end > start && isWhitespace(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

/** A field section that has been read. */
interface ReadSection {
  readonly fields: FieldLines;
  readonly control: ControlFields;
}

/** Larger sections are parsed each time rather than kept for a connection that may stay quiet for long. */
const KNOWN_CHARS = 2048;

/** How many first sections are kept for all connections together. */
const MAX_FIRST_SECTIONS = 16;

/** How many of the latest sections are kept: from a few servers at a time, each with the date of the second. */
const MAX_LATEST_SECTIONS = 4;

interface KnownText {
  /** The field lines and the empty line after them. */
  readonly text: string;
  readonly section: ReadSection;
}

/**
 * Sections that the connections of one direction share. Clients that make a connection per request begin each with the
 * same section; a server's sections differ from second to second rather than between connections.
 */
class SharedSections {
  readonly #first = new Map<string, KnownText>();
  /** A ring. */
  readonly #latest: (KnownText | undefined)[] = new Array(MAX_LATEST_SECTIONS).fill(undefined);
  #oldest = 0;

  latest(text: string): KnownText | undefined {
    for (const known of this.#latest) if (known?.text === text) return known;
    return undefined;
  }

  first(text: string): KnownText | undefined {
    return this.#first.get(text) ?? this.latest(text);
  }

  keepLatest(known: KnownText): void {
    this.#latest[this.#oldest] = known;
    this.#oldest = (this.#oldest + 1) % MAX_LATEST_SECTIONS;
  }

  keepFirst(known: KnownText): void {
    if (this.#first.size >= MAX_FIRST_SECTIONS) {
      const [oldest] = this.#first.keys();
      if (oldest !== undefined) this.#first.delete(oldest);
    }
    this.#first.set(known.text, known);
  }
}

/** One for each direction. */
export class SectionsInCommon {
  /** A section that passed under other limits proves nothing. */
  readonly #byLimits = new WeakMap<HeadLimits, SharedSections>();

  under(limits: HeadLimits): SharedSections {
    let shared = this.#byLimits.get(limits);
    if (shared === undefined) {
      shared = new SharedSections();
      this.#byLimits.set(limits, shared);
    }
    return shared;
  }
}

/**
 * The latest field section in one direction of a connection. The next is usually the same octet for octet, whatever its
 * start line; then it is not read again, and its fields are lasting. A different one may be known from other
 * connections, which then share one copy.
 */
export class KnownSection {
  readonly #shared: SharedSections;
  #last: KnownText | undefined;

  constructor(shared: SharedSections) {
    this.#shared = shared;
  }

  /** @param text the field lines and the empty line after them */
  get(text: string): ReadSection | undefined {
    if (this.#last?.text !== text) {
      if (text.length > KNOWN_CHARS) return undefined;
      const known = this.#last === undefined ? this.#shared.first(text) : this.#shared.latest(text);
      if (known === undefined) return undefined;
      this.#last = known;
    }
    const { section } = this.#last;
    makeLasting(section.fields);
    return section;
  }

  keep(text: string, section: ReadSection): void {
    if (text.length > KNOWN_CHARS) return;
    const known = { text, section };
    this.#shared.keepLatest(known);
    if (this.#last === undefined) this.#shared.keepFirst(known);
    this.#last = known;
  }
}
