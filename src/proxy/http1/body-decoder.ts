import { permittedTrailers } from '../http/fields.ts';
import { CR, HTAB, isWhitespace, LF, TOKEN } from '../http/syntax.ts';
import { type FieldLines, type HeadLimits, parseFieldLines } from './field-section.ts';
import type { BodyFraming } from './heads.ts';
import { AT_LINE_START, HeldSection } from './held-section.ts';
import { type MessageKind, ParseError, type RefusalReason } from './parse-error.ts';

/** Slices a body out of the given chunks without copying. Call `read` from `position` until `complete`. */
export interface BodyDecoder {
  /** Index in the last chunk of the first octet not taken. */
  readonly position: number;
  readonly complete: boolean;
  /** Trailers to pass on, once the message is complete. */
  readonly trailers: FieldLines;
  /** Octets of trailers that are not whole. */
  readonly heldBytes: number;

  /**
   * Undefined if only framing was read. May leave octets for another call.
   * @throws {ParseError}
   */
  read(chunk: Buffer, start: number): Buffer | undefined;

  /**
   * The connection has ended.
   * @throws {ParseError} `truncated` if the message is not complete.
   */
  end(): void;
}

const NO_TRAILERS: FieldLines = [];

/** Complete from the start if there is no body. */
export function bodyDecoder(
  kind: MessageKind,
  framing: Exclude<BodyFraming, { kind: 'tunnel' }>,
  limits: HeadLimits,
): BodyDecoder {
  switch (framing.kind) {
    case 'none':
      return new LengthDecoder(kind, 0);
    case 'length':
      return new LengthDecoder(kind, framing.bytes);
    case 'chunked':
      return new ChunkedDecoder(kind, limits);
    case 'close':
      return new CloseDecoder();
  }
}

/** RFC 9112 §6.2. */
class LengthDecoder implements BodyDecoder {
  position = 0;
  complete: boolean;
  readonly trailers = NO_TRAILERS;
  readonly heldBytes = 0;
  readonly #kind: MessageKind;
  #remaining: number;

  constructor(kind: MessageKind, bytes: number) {
    this.#kind = kind;
    this.#remaining = bytes;
    this.complete = bytes === 0;
  }

  read(chunk: Buffer, start: number): Buffer | undefined {
    const end = Math.min(chunk.length, start + this.#remaining);
    this.position = end;
    this.#remaining -= end - start;
    this.complete = this.#remaining === 0;
    return sliceOf(chunk, start, end);
  }

  end(): void {
    if (!this.complete) throw new ParseError(this.#kind, 'truncated');
  }
}

/** An answer's body (RFC 9112 §6.3, rule 8); nobody can tell whether it is whole. */
class CloseDecoder implements BodyDecoder {
  position = 0;
  complete = false;
  readonly trailers = NO_TRAILERS;
  readonly heldBytes = 0;

  read(chunk: Buffer, start: number): Buffer | undefined {
    this.position = this.complete ? start : chunk.length;
    return sliceOf(chunk, start, this.position);
  }

  end(): void {
    this.complete = true;
  }
}

function sliceOf(chunk: Buffer, start: number, end: number): Buffer | undefined {
  if (start === end) return undefined;
  return start === 0 && end === chunk.length ? chunk : chunk.subarray(start, end);
}

/** Counts leading zeros, too, in all chunks of a message. */
const MAX_EXTENSION_BYTES = 16_384;

const SIZE = 0;
const EXTENSION = 1;
const SIZE_LF = 2;
const DATA = 3;
const DATA_CR = 4;
const DATA_LF = 5;
const TRAILERS = 6;

/**
 * RFC 9112 §7.1. Stricter where readers disagree: sizes below 2^53; bounded, well-formed extensions, which
 * are not passed on. Blanks may end a size's line only in answers, as old servers pad (RFC 2616) and clients
 * agree.
 */
class ChunkedDecoder implements BodyDecoder {
  position = 0;
  complete = false;
  trailers: FieldLines = [];

  readonly #kind: MessageKind;
  readonly #limits: HeadLimits;
  #state = SIZE;
  #sized = false;
  /** The size, then the octets of data to come. */
  #remaining = 0;
  #extension: ExtensionPosition = NAME_START;
  #extensionBytes = 0;
  #trailerSection: HeldSection | undefined;

  constructor(kind: MessageKind, limits: HeadLimits) {
    this.#kind = kind;
    this.#limits = limits;
  }

  get heldBytes(): number {
    return this.#trailerSection?.length ?? 0;
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
    throw new ParseError(this.#kind, reason);
  }
}

/** -1 if it is no `HEXDIG`. */
function hexDigitOf(octet: number): number {
  if (octet >= 0x30 && octet <= 0x39) return octet - 0x30;
  const lower = octet | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

const REFUSED_TRAILERS = /^(?:content-length|transfer-encoding|connection|proxy-connection)$/i;

/**
 * Drops trailers that could change what is decided. Refuses those that frame the body or close the
 * connection, as some readers heed them.
 */
export function readTrailers(fields: FieldLines): FieldLines | RefusalReason {
  for (let at = 0; at < fields.length; at += 2) {
    if (REFUSED_TRAILERS.test(fields[at] as string)) return 'control_in_trailers';
  }
  return permittedTrailers(fields);
}

const NAME_START = 0;
const NAME = 1;
const VALUE_START = 2;
const VALUE = 3;
const QUOTED = 4;
const ESCAPED = 5;
const AFTER_QUOTED = 6;
/** `=` or `;` follows. */
const AFTER_NAME = 7;
/** `;` follows a size or a value. */
const BEFORE_SEMICOLON = 8;

/**
 * In chunk extensions (RFC 9112 §7.1.1), ASCII only. Requests have been smuggled where readers misjudged
 * their end.
 */
type ExtensionPosition =
  | typeof NAME_START
  | typeof NAME
  | typeof VALUE_START
  | typeof VALUE
  | typeof QUOTED
  | typeof ESCAPED
  | typeof AFTER_QUOTED
  | typeof AFTER_NAME
  | typeof BEFORE_SEMICOLON;

const SEMICOLON = 0x3b;
const EQUALS = 0x3d;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Undefined if `octet` is not allowed there. */
function nextExtensionPosition(position: ExtensionPosition, octet: number): ExtensionPosition | undefined {
  switch (position) {
    case NAME_START:
      if (isWhitespace(octet)) return NAME_START;
      return TOKEN[octet] === 1 ? NAME : undefined;
    case NAME:
      if (TOKEN[octet] === 1) return NAME;
      return octet === EQUALS ? VALUE_START : afterWord(octet, AFTER_NAME);
    case AFTER_NAME:
      return octet === EQUALS ? VALUE_START : afterWord(octet, AFTER_NAME);
    case VALUE_START:
      if (isWhitespace(octet)) return VALUE_START;
      if (octet === QUOTE) return QUOTED;
      return TOKEN[octet] === 1 ? VALUE : undefined;
    case VALUE:
      return TOKEN[octet] === 1 ? VALUE : afterWord(octet, BEFORE_SEMICOLON);
    case QUOTED:
      if (octet === QUOTE) return AFTER_QUOTED;
      if (octet === BACKSLASH) return ESCAPED;
      return isText(octet) ? QUOTED : undefined;
    case ESCAPED:
      return isText(octet) ? QUOTED : undefined;
    case AFTER_QUOTED:
    case BEFORE_SEMICOLON:
      return afterWord(octet, BEFORE_SEMICOLON);
  }
}

function afterWord(octet: number, afterSpace: ExtensionPosition): ExtensionPosition | undefined {
  if (octet === SEMICOLON) return NAME_START;
  return isWhitespace(octet) ? afterSpace : undefined;
}

/** @param padded blanks may end the line. */
function mayEndExtension(position: ExtensionPosition, padded: boolean): boolean {
  switch (position) {
    case NAME:
    case VALUE:
    case AFTER_QUOTED:
      return true;
    case AFTER_NAME:
    case BEFORE_SEMICOLON:
      return padded;
    default:
      return false;
  }
}

function isText(octet: number): boolean {
  return octet === HTAB || (octet >= 0x20 && octet <= 0x7e);
}
