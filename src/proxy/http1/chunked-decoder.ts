import { CR, isWhitespace, LF } from '../http/octets.ts';
import type { BodyDecoder } from './body-decoder.ts';
import {
  BEFORE_SEMICOLON,
  type ExtensionPosition,
  mayEndExtension,
  NAME_START,
  nextExtensionPosition,
} from './chunk-extension.ts';
import { type FieldLines, parseFieldLines } from './field-lines.ts';
import type { HeadLimits } from './head-limits.ts';
import { HeldSection } from './held-section.ts';
import { AT_LINE_START } from './line-ends.ts';
import { type MessageKind, MessageRefused, type RefusalReason } from './message-refused.ts';
import { readTrailers } from './trailer-fields.ts';

/** Octets of extensions and of leading zeros in all chunks of one message; few senders use either. */
const MAX_EXTENSION_BYTES = 16_384;

const SIZE = 0;
const EXTENSION = 1;
const SIZE_LF = 2;
const DATA = 3;
const DATA_CR = 4;
const DATA_LF = 5;
const TRAILERS = 6;

const SEMICOLON = 0x3b;

/**
 * A chunked body (RFC 9112 §7.1). Stricter than the RFC where readers are known to disagree: sizes below 2^53, and
 * extensions bounded over the whole message and well-formed. Extensions are not passed on.
 *
 * One leniency: in an answer, blanks may end the line of a chunk's size. Old servers pad sizes, RFC 2616 allowed it,
 * and every client reads the same. In a request they are refused, because readers of requests differ on them.
 */
export class ChunkedDecoder implements BodyDecoder {
  position = 0;
  complete = false;
  trailers: FieldLines = [];

  readonly #kind: MessageKind;
  readonly #limits: HeadLimits;
  #state = SIZE;
  /** Whether a digit of the size has come. */
  #sized = false;
  /** The size as read so far, then the octets of data still to come. */
  #remaining = 0;
  #extension: ExtensionPosition = NAME_START;
  #extensionBytes = 0;
  #trailerSection: HeldSection | undefined;

  constructor(kind: MessageKind, limits: HeadLimits) {
    this.#kind = kind;
    this.#limits = limits;
  }

  read(chunk: Buffer, start: number): Buffer | undefined {
    let at = start;
    while (at < chunk.length && !this.complete) {
      if (this.#state === DATA) {
        const end = Math.min(chunk.length, at + this.#remaining);
        this.#remaining -= end - at;
        if (this.#remaining === 0) this.#state = DATA_CR;
        this.position = end;
        return chunk.subarray(at, end);
      }
      if (this.#state === TRAILERS) at = this.#readTrailers(chunk, at);
      else this.#readFraming(chunk[at++] as number);
    }
    this.position = at;
    return undefined;
  }

  end(): void {
    if (!this.complete) this.#refuse('truncated');
  }

  #readFraming(octet: number): void {
    switch (this.#state) {
      case SIZE:
        this.#readSize(octet);
        break;
      case EXTENSION:
        this.#readExtension(octet);
        break;
      case SIZE_LF:
        if (octet !== LF) this.#refuse('chunk_line_unterminated');
        this.#state = this.#remaining === 0 ? TRAILERS : DATA;
        break;
      case DATA_CR:
        if (octet !== CR) this.#refuse('chunk_data_unterminated');
        this.#state = DATA_LF;
        break;
      case DATA_LF:
        if (octet !== LF) this.#refuse('chunk_data_unterminated');
        this.#state = SIZE;
        this.#sized = false;
        break;
    }
  }

  #readSize(octet: number): void {
    const digit = hexDigitOf(octet);
    if (digit !== -1) {
      // A digit after nothing but zeros: some servers pad sizes with them.
      if (this.#sized && this.#remaining === 0) this.#countExtension();
      this.#sized = true;
      this.#remaining = this.#remaining * 16 + digit;
      if (this.#remaining > Number.MAX_SAFE_INTEGER) this.#refuse('chunk_size_malformed');
      return;
    }
    if (!this.#sized) this.#refuse('chunk_size_malformed');
    if (octet === CR) {
      this.#state = SIZE_LF;
    } else if (octet === SEMICOLON || isWhitespace(octet)) {
      this.#state = EXTENSION;
      this.#extension = octet === SEMICOLON ? NAME_START : BEFORE_SEMICOLON;
      this.#countExtension();
    } else {
      this.#refuse(octet === LF ? 'chunk_line_unterminated' : 'chunk_size_malformed');
    }
  }

  #readExtension(octet: number): void {
    if (octet === CR && mayEndExtension(this.#extension, this.#kind === 'response')) {
      this.#state = SIZE_LF;
      return;
    }
    this.#countExtension();
    this.#extension =
      nextExtensionPosition(this.#extension, octet) ?? this.#refuse('chunk_extension_malformed');
  }

  #countExtension(): void {
    this.#extensionBytes++;
    if (this.#extensionBytes > MAX_EXTENSION_BYTES) this.#refuse('chunk_extensions_too_large');
  }

  #readTrailers(chunk: Buffer, start: number): number {
    if (this.#trailerSection === undefined && chunk[start] === CR && chunk[start + 1] === LF) {
      this.complete = true;
      return start + 2;
    }
    this.#trailerSection ??= new HeldSection(this.#limits.headerBytes, AT_LINE_START);
    const section = this.#trailerSection;
    const end = section.append(chunk, start);
    if (typeof end === 'string') return this.#refuse(end);
    if (section.complete) {
      const text = section.bytes.toString('latin1', 0, section.length);
      const fields = parseFieldLines(section.bytes, 0, text, 0, this.#limits.headerCount);
      if (typeof fields === 'string') return this.#refuse(fields);
      const trailers = readTrailers(fields);
      if (typeof trailers === 'string') return this.#refuse(trailers);
      this.trailers = trailers;
      this.#trailerSection = undefined;
      this.complete = true;
    } else if (section.full) {
      return this.#refuse('trailers_too_large');
    }
    return end;
  }

  #refuse(reason: RefusalReason): never {
    throw new MessageRefused(this.#kind, reason);
  }
}

/** Value of a `HEXDIG`, or -1. */
function hexDigitOf(octet: number): number {
  if (octet >= 0x30 && octet <= 0x39) return octet - 0x30;
  const lower = octet | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}
