/**
 * Splits of the stream change neither heads nor refusals. A start line that begins no message is refused as
 * soon as it is complete.
 */

import { CR, LF, SP } from '../http/syntax.ts';
import { type HeadLimits, KnownSection, SectionsInCommon } from './field-section.ts';
import {
  type Http1ResponseHead,
  parseRequestHead,
  parseRequestLine,
  parseResponseHead,
  parseStatusLine,
  type RequestHead,
} from './heads.ts';
import { HeldSection, IN_LINE, lineFault } from './held-section.ts';
import { type MessageKind, ParseError, type RefusalReason } from './parse-error.ts';

interface Grammar<Head> {
  readonly kind: MessageKind;
  readonly sections: SectionsInCommon;
  readonly parseHead: (
    bytes: Buffer,
    start: number,
    end: number,
    limits: HeadLimits,
    known: KnownSection,
  ) => Head | RefusalReason;
  /** The line begins at `bytes[start]` and ends with CRLF. */
  readonly startLineFault: (
    bytes: Buffer,
    start: number,
    text: string,
    limits: HeadLimits,
  ) => RefusalReason | undefined;
}

const REQUESTS: Grammar<RequestHead> = {
  kind: 'request',
  sections: new SectionsInCommon(),
  parseHead: parseRequestHead,
  startLineFault(bytes, start, text, limits) {
    const line = parseRequestLine(bytes, start, text, limits);
    return typeof line === 'string' ? line : undefined;
  },
};

const ANSWERS: Grammar<Http1ResponseHead> = {
  kind: 'response',
  sections: new SectionsInCommon(),
  parseHead: parseResponseHead,
  startLineFault(bytes, start, text) {
    const line = parseStatusLine(bytes, start, text);
    return typeof line === 'string' ? line : undefined;
  },
};

const LINE_END = Buffer.from('\r\n', 'latin1');
const EMPTY_LINE = Buffer.from('\r\n\r\n', 'latin1');

/** An empty line before the head: not allowed any more, its CR seen, or allowed. */
const NO_EMPTY_LINE = 0;
const EMPTY_LINE_CR = 1;
const EMPTY_LINE_ALLOWED = 2;

/** Reads one direction of a connection. Useless once it has thrown. */
export class HeadReader<Head extends object> {
  /** Index in the last chunk of the first octet not taken. */
  position = 0;

  readonly #grammar: Grammar<Head>;
  readonly #limits: HeadLimits;
  readonly #held: HeldSection;
  readonly #known: KnownSection;
  /** Whether the held head's start line has been checked. */
  #begun = false;
  #emptyLine: number;

  constructor(grammar: Grammar<Head>, limits: HeadLimits) {
    this.#grammar = grammar;
    this.#limits = limits;
    this.#known = new KnownSection(grammar.sections.under(limits));
    this.#held = new HeldSection(limits.headerBytes, IN_LINE);
    this.#emptyLine = this.#atStart();
  }

  /** If so, the peer is slow or gone, not idle. */
  get started(): boolean {
    return this.#held.length > 0 || this.#emptyLine === EMPTY_LINE_CR;
  }

  get heldBytes(): number {
    return this.#held.length;
  }

  /**
   * Undefined until the head is whole. Keeps no reference to `chunk`.
   * @throws {ParseError}
   */
  read(chunk: Buffer, start: number): Head | undefined {
    const from = this.#skipEmptyLine(chunk, start);
    if (this.#held.length === 0) {
      // HTTP/2 begins with SETTINGS, whose length starts with a zero octet.
      if (chunk[from] === 0 && this.#grammar.kind === 'response') this.#refuse('http2_answer');
      const emptyLine = chunk.indexOf(EMPTY_LINE, from);
      const end = emptyLine + EMPTY_LINE.length;
      const whole = emptyLine !== -1 && end - from <= this.#limits.headerBytes;
      if (whole) return this.#finish(chunk, from, end, end);
    }
    return this.#readPiecewise(chunk, from);
  }

  #readPiecewise(chunk: Buffer, from: number): Head | undefined {
    const end = this.#held.append(chunk, from);
    const { bytes, length, firstLineEnd } = this.#held;
    if (!this.#begun && firstLineEnd > 0) this.#lookAtStartLine(bytes, firstLineEnd);
    if (typeof end === 'string') return this.#refuse(end);
    if (this.#held.complete) return this.#finish(bytes, 0, length, end);
    if (this.#held.full) return this.#refuse(this.#tooLarge(bytes.subarray(0, length)));
    this.position = end;
    return undefined;
  }

  #lookAtStartLine(bytes: Buffer, end: number): void {
    this.#begun = true;
    const fault = this.#grammar.startLineFault(bytes, 0, bytes.toString('latin1', 0, end), this.#limits);
    if (fault !== undefined) this.#refuse(fault);
  }

  #finish(bytes: Buffer, start: number, end: number, position: number): Head {
    const head = this.#grammar.parseHead(bytes, start, end, this.#limits, this.#known);
    if (typeof head === 'string') return this.#refuse(this.#firstFault(bytes, start, end) ?? head);
    this.#held.clear();
    this.#begun = false;
    this.#emptyLine = this.#atStart();
    this.position = position;
    return head;
  }

  /** The fault that reading octet by octet would find first. */
  #firstFault(bytes: Buffer, start: number, end: number): RefusalReason | undefined {
    const startLineEnd = bytes.indexOf(LINE_END, start) + LINE_END.length;
    return (
      lineFault(bytes, start, startLineEnd) ??
      this.#grammar.startLineFault(bytes, start, bytes.toString('latin1', start, end), this.#limits) ??
      lineFault(bytes, start, end)
    );
  }

  #refuse(reason: RefusalReason): never {
    throw new ParseError(this.#grammar.kind, reason);
  }

  /** Blames a target that is too large by itself. */
  #tooLarge(held: Buffer): RefusalReason {
    if (this.#grammar.kind === 'response') return 'head_too_large';
    const lineEnd = held.indexOf(CR);
    const line = lineEnd === -1 ? held : held.subarray(0, lineEnd);
    const targetStart = line.indexOf(SP) + 1;
    if (targetStart === 0) return 'head_too_large';
    const space = line.indexOf(SP, targetStart);
    const targetEnd = space === -1 ? line.length : space;
    return targetEnd - targetStart > this.#limits.targetBytes ? 'target_too_long' : 'head_too_large';
  }

  /**
   * Old clients send one before a request line (RFC 9112 §2.2). Before a status line it would be left over
   * from a wrongly framed body.
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
      if (chunk[at] !== LF) this.#refuse('bare_cr');
      this.#emptyLine = NO_EMPTY_LINE;
      at++;
    }
    return at;
  }

  #atStart(): number {
    return this.#grammar.kind === 'request' ? EMPTY_LINE_ALLOWED : NO_EMPTY_LINE;
  }
}

export function requestHeadReader(limits: HeadLimits): HeadReader<RequestHead> {
  return new HeadReader(REQUESTS, limits);
}

export function responseHeadReader(limits: HeadLimits): HeadReader<Http1ResponseHead> {
  return new HeadReader(ANSWERS, limits);
}
