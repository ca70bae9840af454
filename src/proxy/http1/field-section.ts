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
import type { MessageKind, RefusalReason } from './parse-error.ts';

export interface HeadLimits {
  readonly headerBytes: number;
  /** Counts fields. */
  readonly headerCount: number;
  readonly targetBytes: number;
}

interface FieldSectionSource {
  readonly bytes: Buffer;
  /** Where the first field line begins, or the empty line. */
  readonly start: number;
  /** After the empty line. */
  readonly end: number;
  readonly minorVersion: 0 | 1;
  readonly maxFields: number;
  /** A section whose fields may be reused. */
  readonly known: KnownSection | undefined;
}

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

/** Name, value, …; order, case and repetitions kept, values trimmed, one char an octet (latin1). */
export type FieldLines = readonly string[];

const FRAMING = /^(?:content-length|transfer-encoding)$/i;

/**
 * Parses the lines of a head or trailer section (RFC 9112 §5).
 * @param bytes lines end in CRLF, the empty line included
 * @param textStart of `text` in `bytes`
 * @param text the section, or a head around it, as latin1
 * @param at first field line, or the empty line, in `bytes`
 * @param maxFields more are refused
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
    // Faulty line ends were reported before.
    if (!isLineEnd(bytes, lineEnd)) return 'control_octet';
    let valueEnd = lineEnd;
    while (valueEnd > valueStart && isWhitespace(bytes[valueEnd - 1])) valueEnd--;

    if (fields.length === maxFields * 2) return 'too_many_fields';
    const name = text.slice(lineStart - textStart, nameEnd - textStart);
    // Readers such as llhttp take `chunked` beside a tab for another coding.
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
 * They decide how a connection is read on. Refused if readers could differ, as for names with `_` for `-`
 * (CGI, WSGI).
 */
export interface ControlFields {
  readonly contentLength: number | undefined;
  /** Never together with `contentLength`. */
  readonly chunked: boolean;
  /** Ignored in an answer. */
  readonly host: string | undefined;
  /** In lower case (RFC 9110 §7.6.1), with a `close` of Proxy-Connection. */
  readonly connectionOptions: readonly string[];
}

const NO_OPTIONS: readonly string[] = [];
const KEEP_ALIVE: readonly string[] = ['keep-alive'];
const CLOSE: readonly string[] = ['close'];

/** Removes an answer's repeated length and leading zeros from `fields`. */
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
    // The length spares most strings.
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
            // Chained servers may repeat it (RFC 9110 §8.6). In a request that is meant to be read in two
            // ways.
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
        // Non-standard (RFC 9112 §C.2.2), but some close on it, which is harmless.
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

export function announcesBody({ chunked, contentLength = 0 }: ControlFields): boolean {
  return chunked || contentLength > 0;
}

/** Undefined if malformed (RFC 9110 §7.6.1, §5.6.1). */
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

/** `trim` strips more, and a regular expression takes quadratic time. */
function withoutWhitespace(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isWhitespace(text.charCodeAt(start))) start++;
  while (end > start && isWhitespace(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

interface ReadSection {
  readonly fields: FieldLines;
  readonly control: ControlFields;
}

/** Quiet connections keep no larger section. */
const KNOWN_CHARS = 2048;

/** All connections share them. */
const MAX_FIRST_SECTIONS = 16;

/** A few servers, each with the date of the second. */
const MAX_LATEST_SECTIONS = 4;

interface KnownText {
  /** The field lines and the empty line after them. */
  readonly text: string;
  readonly section: ReadSection;
}

/** New connections begin with the same request section, and answers of one second are alike. */
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

/** Each direction has one. */
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

/** An equal section, or one known from another connection, is not parsed again; its fields are lasting. */
export class KnownSection {
  readonly #shared: SharedSections;
  #last: KnownText | undefined;

  constructor(shared: SharedSections) {
    this.#shared = shared;
  }

  /** @param text ends with the empty line. */
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
