import { CONTROL, CR, LF } from '../http/syntax.ts';
import type { RefusalReason } from './parse-error.ts';

const FIRST_CAPACITY_BYTES = 1024;
const NOTHING = Buffer.alloc(0);

/** Looks at each octet once and holds at most the limit, so that single octets cost no more. */
export class HeldSection {
  readonly #limitBytes: number;
  readonly #startsAt: LinePosition;
  #position: LinePosition;
  #bytes = NOTHING;
  #length = 0;
  #firstLineEnd = 0;

  constructor(limitBytes: number, startsAt: LinePosition) {
    this.#limitBytes = limitBytes;
    this.#startsAt = startsAt;
    this.#position = startsAt;
  }

  get length(): number {
    return this.#length;
  }

  /** Includes the CRLF; 0 until that has come. */
  get firstLineEnd(): number {
    return this.#firstLineEnd;
  }

  /** The empty line is part of `bytes[0..length)`. */
  get complete(): boolean {
    return this.#position === AT_END;
  }

  /** Unless `complete`, the section is too large. */
  get full(): boolean {
    return this.#length === this.#limitBytes;
  }

  /** Valid up to `length` and until the next call. */
  get bytes(): Buffer {
    return this.#bytes;
  }

  /** The first index not taken, or a fault; earlier octets are held. */
  append(chunk: Buffer, start: number): number | RefusalReason {
    const stop = Math.min(chunk.length, start + this.#limitBytes - this.#length);
    let end = start;
    while (end < stop && this.#position !== AT_END) {
      const next = nextPosition(this.#position, chunk[end] as number);
      if (typeof next === 'string') {
        this.#hold(chunk, start, end);
        return next;
      }
      this.#position = next;
      end++;
      if (next === AT_LINE_START && this.#firstLineEnd === 0) this.#firstLineEnd = this.#length + end - start;
    }
    this.#hold(chunk, start, end);
    return end;
  }

  clear(): void {
    this.#bytes = NOTHING;
    this.#length = 0;
    this.#firstLineEnd = 0;
    this.#position = this.#startsAt;
  }

  #hold(chunk: Buffer, start: number, end: number): void {
    const length = this.#length + end - start;
    if (length > this.#bytes.length) {
      const capacity = Math.max(FIRST_CAPACITY_BYTES, this.#bytes.length * 2, length);
      const larger = Buffer.allocUnsafe(Math.min(capacity, this.#limitBytes));
      this.#bytes.copy(larger, 0, 0, this.#length);
      this.#bytes = larger;
    }
    chunk.copy(this.#bytes, this.#length, start, end);
    this.#length = length;
  }
}

export const IN_LINE = 0;
const AFTER_CR = 1;
export const AT_LINE_START = 2;
const AFTER_LAST_CR = 3;
const AT_END = 4;

/** Only CRLF ends a line (RFC 9112 §2.2). By octet, so that splits change nothing. */
type LinePosition =
  | typeof IN_LINE
  | typeof AFTER_CR
  | typeof AT_LINE_START
  | typeof AFTER_LAST_CR
  | typeof AT_END;

/** @returns a reason if the octet is not allowed. */
function nextPosition(position: LinePosition, octet: number): LinePosition | RefusalReason {
  const afterCr = position === AFTER_CR || position === AFTER_LAST_CR;
  if (octet === LF) {
    if (!afterCr) return 'bare_lf';
    return position === AFTER_CR ? AT_LINE_START : AT_END;
  }
  if (afterCr) return 'bare_cr';
  if (octet === CR) return position === AT_LINE_START ? AFTER_LAST_CR : AFTER_CR;
  return CONTROL[octet] === 1 ? 'control_octet' : IN_LINE;
}

/** @param start within a line. */
export function lineFault(bytes: Uint8Array, start: number, end: number): RefusalReason | undefined {
  let position: LinePosition = IN_LINE;
  for (let at = start; at < end && position !== AT_END; at++) {
    const next = nextPosition(position, bytes[at] as number);
    if (typeof next === 'string') return next;
    position = next;
  }
  return undefined;
}
