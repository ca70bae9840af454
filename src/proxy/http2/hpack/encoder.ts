/**
 * Uses the static table and literals alone (RFC 7541 §6), so that blocks are independent. Call `begin` after
 * `FrameOutput.beginHeaders`.
 */

import { SidecarError } from '../../../platform/errors.ts';
import { isLasting, MadeOf } from '../../http/lasting-fields.ts';
import type { FrameOutput } from '../frame-output.ts';
import { DEFAULT_HEADER_TABLE_BYTES } from '../settings.ts';
import { STATIC_BY_NAME } from './static-table.ts';

const INDEXED = 0x80;
const TABLE_SIZE_ZERO = 0x20;
const NEVER_INDEXED = 0x10;
const WITHOUT_INDEXING = 0x00;

const INTEGER_BYTES = 6;

const NONE: readonly string[] = [];

/** No table may hold what could be guessed from it (§7.1.3). */
const CREDENTIALS: ReadonlySet<string> = new Set(['authorization', 'dpop', 'proxy-authorization']);

/** Up to here the system's copying is no faster. */
const SHORT_CHARS = 32;

const BLOCKS = new MadeOf<{ readonly neverIndexed: readonly string[]; readonly block: Buffer }>();

/** They end a line for some reader, or are no octet. */
const NOT_IN_FIELD = /[\0\r\n]|[^\0-\xff]/;

export class HpackEncoder {
  /** The peer's decoder waits for an update (§4.2). */
  #updateDue = false;
  #emptied = false;
  /** Whether the block begun last has the update. */
  #updateWritten = false;

  /** Acknowledges a shrunk table in the next block, by emptying it for good. */
  setPeerTableSize(bytes: number): void {
    if (bytes < DEFAULT_HEADER_TABLE_BYTES && !this.#emptied) this.#updateDue = true;
  }

  begin(output: FrameOutput): void {
    this.#updateWritten = this.#updateDue;
    if (!this.#updateDue) return;
    output.room(1);
    output.bytes[output.length++] = TABLE_SIZE_ZERO;
    this.#updateDue = false;
    this.#emptied = true;
  }

  /** The block begun last is not sent: its update is still due. */
  abandon(): void {
    if (!this.#updateWritten) return;
    this.#updateWritten = false;
    this.#updateDue = true;
    this.#emptied = false;
  }

  /** @param neverIndexed names of fields. */
  fields(output: FrameOutput, fields: readonly string[], neverIndexed: readonly string[] = NONE): void {
    const known = BLOCKS.get(fields);
    if (known?.neverIndexed === neverIndexed) {
      output.octets(known.block);
      return;
    }
    const start = output.length;
    this.#fields(output, fields, neverIndexed);
    if (!isLasting(fields)) return;
    // A copy keeps no larger buffer alive.
    const block = Buffer.allocUnsafeSlow(output.length - start);
    output.bytes.copy(block, 0, start, output.length);
    BLOCKS.keep(fields, { neverIndexed, block });
  }

  #fields(output: FrameOutput, fields: readonly string[], neverIndexed: readonly string[]): void {
    if (fields.length % 2 !== 0) throw new SidecarError('internal', 'A field to be sent has no value');
    for (let at = 0; at < fields.length; at += 2) {
      const name = fields[at] as string;
      const never = neverIndexed.length > 0 && neverIndexed.includes(name);
      this.field(output, name, fields[at + 1] as string, never);
    }
  }

  /**
   * @param name in lower case
   * @param neverIndexed credentials never are
   * @throws {SidecarError} `internal` if it could end a line, or is no octet.
   */
  field(output: FrameOutput, name: string, value: string, neverIndexed: boolean): void {
    output.room(1 + 3 * INTEGER_BYTES + name.length + value.length);
    const known = STATIC_BY_NAME.get(name);
    const never = neverIndexed || CREDENTIALS.has(name);
    if (known === undefined) {
      output.bytes[output.length++] = never ? NEVER_INDEXED : WITHOUT_INDEXING;
      this.#string(output, name);
    } else {
      const same = never ? -1 : known.values.indexOf(value);
      if (same !== -1) {
        output.bytes[output.length++] = INDEXED | (known.index + same);
        return;
      }
      writeInteger(output, never ? NEVER_INDEXED : WITHOUT_INDEXING, 0x0f, known.index);
    }
    this.#string(output, value);
  }

  #string(output: FrameOutput, text: string): void {
    const { length } = text;
    writeInteger(output, 0, 0x7f, length);
    const { bytes } = output;
    if (length > SHORT_CHARS) {
      if (NOT_IN_FIELD.test(text)) refuse();
      output.length += bytes.write(text, output.length, 'latin1');
      return;
    }
    let at = output.length;
    for (let index = 0; index < length; index++) {
      const char = text.charCodeAt(index);
      if (char > 0xff || (char < 0x20 && (char === 0x0d || char === 0x0a || char === 0))) refuse();
      bytes[at++] = char;
    }
    output.length = at;
  }
}

function refuse(): never {
  throw new SidecarError('internal', 'A field to be sent holds a CR, LF, NUL or a char above U+00FF');
}

/** An integer (§5.1) after the bits `pattern`. */
function writeInteger(output: FrameOutput, pattern: number, prefix: number, value: number): void {
  const { bytes } = output;
  if (value < prefix) {
    bytes[output.length++] = pattern | value;
    return;
  }
  bytes[output.length++] = pattern | prefix;
  let rest = value - prefix;
  while (rest >= 0x80) {
    bytes[output.length++] = (rest & 0x7f) | 0x80;
    rest >>>= 7;
  }
  bytes[output.length++] = rest;
}
