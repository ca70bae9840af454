/** Rules of every section (RFC 9113 §8.2). A breach is an error of the stream (§8.1.1). */

import { parseContentLength } from '../http/fields.ts';
import { FIELD_VALUE, HTAB, SP, TOKEN } from '../http/syntax.ts';
import type { FaultReason } from './errors.ts';

/** Name, value, …; names in lower case, order and repetitions kept. */
export type Fields = readonly string[];

/** A field counts this beside its octets (RFC 9113 §6.5.2). */
export const FIELD_OVERHEAD_BYTES = 32;

/** As SETTINGS_MAX_HEADER_LIST_SIZE counts. @param fields one char an octet (latin1). */
export function sectionBytes(fields: readonly string[]): number {
  let bytes = (fields.length / 2) * FIELD_OVERHEAD_BYTES;
  for (const part of fields) bytes += part.length;
  return bytes;
}

type SectionKind = 'request' | 'answer' | 'trailers';

interface ControlFields {
  readonly contentLength: number | undefined;
  /** Only requests have it. */
  readonly host: string | undefined;
  /** Has a normalised length; undefined if nothing changed. */
  readonly mended: Fields | undefined;
}

const NO_CONTROL_FIELDS: ControlFields = { contentLength: undefined, host: undefined, mended: undefined };

const COLON = 0x3a;

const LOWER_CASE_TOKEN = TOKEN.map((member, octet) => (octet >= 0x41 && octet <= 0x5a ? 0 : member));

export function isPseudo(name: string): boolean {
  return name.charCodeAt(0) === COLON;
}

/** §8.2.1, RFC 9110 §5.5 */
function isFieldValue(value: string): boolean {
  const { length } = value;
  if (length === 0) return true;
  for (let at = 0; at < length; at++) if (FIELD_VALUE[value.charCodeAt(at)] !== 1) return false;
  return !isBlank(value.charCodeAt(0)) && !isBlank(value.charCodeAt(length - 1));
}

/**
 * @param from after the pseudo-fields.
 * @returns `mended` without an answer's repeated length and leading zeros.
 */
export function readFields(kind: SectionKind, given: Fields, from: number): ControlFields | FaultReason {
  let fields = given;
  let contentLength: number | undefined;
  let host: string | undefined;

  for (let at = from; at < fields.length; at += 2) {
    const name = fields[at] as string;
    const value = fields[at + 1] as string;
    if (!isFieldName(name)) return isPseudo(name) ? latePseudo(kind) : 'name_malformed';
    if (!isFieldValue(value)) return 'value_malformed';
    // The length spares most comparisons.
    switch (name.length) {
      case 2:
        if (name === 'te' && value.toLowerCase() !== 'trailers') return 'te_malformed';
        break;
      case 4:
        if (name === 'host') {
          if (kind === 'trailers') return 'control_in_trailers';
          if (kind === 'request' && host !== undefined) return 'host_malformed';
          host = value;
        }
        break;
      case 7:
        if (name === 'upgrade') return 'connection_specific';
        break;
      case 10:
        if (name === 'connection' || name === 'keep-alive') return 'connection_specific';
        break;
      case 14:
        if (name === 'content_length') return 'length_lookalike';
        if (name === 'content-length') {
          if (kind === 'trailers') return 'control_in_trailers';
          const length = parseContentLength(value);
          if (length === undefined) return 'length_malformed';
          if (contentLength !== undefined) {
            // Chained servers may repeat it (RFC 9110 §8.6). In a request that is meant to be read in two
            // ways.
            if (kind === 'request' || length !== contentLength) return 'length_repeated';
            fields = fields.toSpliced(at, 2);
            at -= 2;
            break;
          }
          contentLength = length;
          if (value.length > 1 && value.startsWith('0')) fields = fields.with(at + 1, String(length));
        }
        break;
      case 16:
        if (name === 'proxy-connection') return 'connection_specific';
        break;
      case 17:
        if (name === 'transfer-encoding') return 'connection_specific';
        if (name === 'transfer_encoding') return 'length_lookalike';
        break;
    }
  }
  if (contentLength === undefined && host === undefined) return NO_CONTROL_FIELDS;
  return { contentLength, host, mended: fields === given ? undefined : fields };
}

/**
 * §8.1, apart from whether they may be passed on.
 * @param endStream of their frame
 */
export function trailersFault(fields: Fields, endStream: boolean): FaultReason | undefined {
  if (!endStream) return 'trailers_unended';
  const control = readFields('trailers', fields, 0);
  return typeof control === 'string' ? control : undefined;
}

function isFieldName(name: string): boolean {
  const { length } = name;
  for (let at = 0; at < length; at++) if (LOWER_CASE_TOKEN[name.charCodeAt(at)] !== 1) return false;
  return length > 0;
}

function latePseudo(kind: SectionKind): FaultReason {
  return kind === 'trailers' ? 'pseudo_in_trailers' : 'pseudo_late';
}

function isBlank(char: number): boolean {
  return char === SP || char === HTAB;
}

/** RFC 9113 §8.1.1. Reports too much with the first octet beyond, too little with the end. */
export class BodyLength {
  readonly #expected: number | undefined;
  #received = 0;

  /** @param expected octets, if known */
  constructor(expected: number | undefined) {
    this.#expected = expected;
  }

  get received(): number {
    return this.#received;
  }

  /**
   * @param bytes without padding
   * @param ended by this DATA, the head or trailers
   */
  receive(bytes: number, ended: boolean): FaultReason | undefined {
    this.#received += bytes;
    if (this.#expected === undefined) return undefined;
    const wrong = ended ? this.#received !== this.#expected : this.#received > this.#expected;
    return wrong ? 'length_differs' : undefined;
  }
}
