/**
 * Finds heads in a stream of octets. Any split of the stream gives the same heads and the same refusals: a head that
 * lies whole in one chunk is parsed where it lies, one that does not is held until its empty line.
 */

import type { HeadLimits } from './head-limits.ts';
import { HeldSection } from './held-section.ts';
import { IN_LINE, lineFault } from './line-ends.ts';
import { CR, LF, SP } from './octets.ts';
import { type MessageKind, MessageRefused, type RefusalReason } from './refusal.ts';
import { parseRequestHead, type RequestHead } from './request-head.ts';
import { parseResponseHead, type ResponseHead } from './response-head.ts';

type ParseHead<Head> = (
  bytes: Buffer,
  start: number,
  end: number,
  limits: HeadLimits,
) => Head | RefusalReason;

const EMPTY_LINE = Buffer.from('\r\n\r\n', 'latin1');

/** An empty line before the head: not looked for any more, its CR seen, or still to be forgiven. */
const NO_EMPTY_LINE = 0;
const EMPTY_LINE_CR = 1;
const EMPTY_LINE_ALLOWED = 2;

/** One per connection and direction; reads one head after another. After it has thrown it is of no more use. */
export class HeadReader<Head extends object> {
  /** Index in the last chunk of the first octet that `read` did not take. */
  position = 0;

  readonly #kind: MessageKind;
  readonly #limits: HeadLimits;
  readonly #parse: ParseHead<Head>;
  readonly #held: HeldSection;
  #emptyLine: number;

  constructor(kind: MessageKind, limits: HeadLimits, parse: ParseHead<Head>) {
    this.#kind = kind;
    this.#limits = limits;
    this.#parse = parse;
    this.#held = new HeldSection(limits.headerBytes, IN_LINE);
    this.#emptyLine = this.#atStart();
  }

  /** Whether part of a head has come: the peer is slow or gone, not idle. */
  get started(): boolean {
    return this.#held.length > 0 || this.#emptyLine === EMPTY_LINE_CR;
  }

  /**
   * Reads on at `chunk[start]`. Returns the head once its last octet has come, otherwise undefined with the whole
   * chunk taken; `position` says where to go on. Keeps no reference to `chunk`.
   * @throws {MessageRefused}
   */
  read(chunk: Buffer, start: number): Head | undefined {
    const from = this.#skipEmptyLine(chunk, start);
    if (this.#held.length === 0) {
      const emptyLine = chunk.indexOf(EMPTY_LINE, from);
      const end = emptyLine + EMPTY_LINE.length;
      const whole = emptyLine !== -1 && end - from <= this.#limits.headerBytes;
      if (whole) return this.#finish(chunk, from, end, end);
    }
    return this.#readPiecewise(chunk, from);
  }

  #readPiecewise(chunk: Buffer, from: number): Head | undefined {
    const end = this.#held.append(chunk, from);
    if (typeof end === 'string') throw new MessageRefused(this.#kind, end);
    const { bytes, length } = this.#held;
    if (this.#held.complete) return this.#finish(bytes, 0, length, end);
    if (this.#held.full) throw new MessageRefused(this.#kind, this.#tooLarge(bytes.subarray(0, length)));
    this.position = end;
    return undefined;
  }

  #finish(bytes: Buffer, start: number, end: number, position: number): Head {
    const head = this.#parse(bytes, start, end, this.#limits);
    // Piece by piece, faulty line ends are met before anything else is looked at; so they go first here as well.
    if (typeof head === 'string') throw new MessageRefused(this.#kind, lineFault(bytes, start, end) ?? head);
    this.#held.clear();
    this.#emptyLine = this.#atStart();
    this.position = position;
    return head;
  }

  /** Blames the target when the head would have been refused for it alone. */
  #tooLarge(held: Buffer): RefusalReason {
    if (this.#kind === 'response') return 'head_too_large';
    const lineEnd = held.indexOf(CR);
    const line = lineEnd === -1 ? held : held.subarray(0, lineEnd);
    const targetStart = line.indexOf(SP) + 1;
    if (targetStart === 0) return 'head_too_large';
    const space = line.indexOf(SP, targetStart);
    const targetEnd = space === -1 ? line.length : space;
    return targetEnd - targetStart > this.#limits.targetBytes ? 'target_too_long' : 'head_too_large';
  }

  /**
   * One empty line before a request line is dropped, as RFC 9112 §2.2 asks for the sake of old clients that end
   * their bodies with one; it is not passed on, so no other reader meets it. A second one has no such excuse, and
   * before a status line there is none at all: there it is left over from a body that was framed wrongly.
   */
  #skipEmptyLine(chunk: Buffer, start: number): number {
    let at = start;
    if (this.#emptyLine === EMPTY_LINE_ALLOWED && at < chunk.length) {
      this.#emptyLine = NO_EMPTY_LINE;
      if (chunk[at] === CR) {
        this.#emptyLine = EMPTY_LINE_CR;
        at++;
      }
    }
    if (this.#emptyLine === EMPTY_LINE_CR && at < chunk.length) {
      if (chunk[at] !== LF) throw new MessageRefused(this.#kind, 'bare_cr');
      this.#emptyLine = NO_EMPTY_LINE;
      at++;
    }
    return at;
  }

  #atStart(): number {
    return this.#kind === 'request' ? EMPTY_LINE_ALLOWED : NO_EMPTY_LINE;
  }
}

export function requestHeadReader(limits: HeadLimits): HeadReader<RequestHead> {
  return new HeadReader('request', limits, parseRequestHead);
}

export function responseHeadReader(limits: HeadLimits): HeadReader<ResponseHead> {
  return new HeadReader('response', limits, parseResponseHead);
}
