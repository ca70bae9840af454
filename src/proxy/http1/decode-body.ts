import type { BodyDecoder } from './body-decoder.ts';
import type { BodyFraming } from './body-framing.ts';
import { ChunkedDecoder } from './chunked-decoder.ts';
import type { FieldLines } from './field-lines.ts';
import type { HeadLimits } from './head-limits.ts';
import { type MessageKind, MessageRefused } from './message-refused.ts';

const NO_TRAILERS: FieldLines = [];

/** The decoder of a body; for a message without one it is complete from the start. */
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

/** A body of known length (RFC 9112 §6.2). */
class LengthDecoder implements BodyDecoder {
  position = 0;
  complete: boolean;
  readonly trailers = NO_TRAILERS;
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
    if (!this.complete) throw new MessageRefused(this.#kind, 'truncated');
  }
}

/** An answer's body that ends with the connection (RFC 9112 §6.3, rule 8). Whether it is whole cannot be known. */
class CloseDecoder implements BodyDecoder {
  position = 0;
  complete = false;
  readonly trailers = NO_TRAILERS;

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
