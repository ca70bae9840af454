import { AT_END, AT_LINE_START, type LinePosition, nextPosition } from './line-ends.ts';
import type { RefusalReason } from './message-refused.ts';

const FIRST_CAPACITY_BYTES = 1024;
const NOTHING = Buffer.alloc(0);

/**
 * Holds the octets of a head or a trailer section that comes in more than one piece. Each octet is looked at once,
 * whatever the pieces, and never more than the limit is held: a peer that sends single octets costs no more than one
 * that does not.
 */
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

  /** Octets held. */
  get length(): number {
    return this.#length;
  }

  /** Octets of the first line with its CRLF; 0 until that has come. */
  get firstLineEnd(): number {
    return this.#firstLineEnd;
  }

  /** Whether the empty line has come; then the section is `bytes[0..length)`, the empty line included. */
  get complete(): boolean {
    return this.#position === AT_END;
  }

  /** Whether no more can be held; with `complete` false the section is larger than the limit. */
  get full(): boolean {
    return this.#length === this.#limitBytes;
  }

  /** Valid up to `length` and until the next call. */
  get bytes(): Buffer {
    return this.#bytes;
  }

  /**
   * Takes octets from `start` until the section is complete or full. Returns the first index not taken, or a fault; then
   * what came before it is held.
   */
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

  /** Lets go of everything held. */
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
