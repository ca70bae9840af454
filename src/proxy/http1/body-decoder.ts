import type { BodyFraming } from './body-framing.ts';
import { ChunkedDecoder } from './chunked-decoder.ts';
import type { Fields } from './field-lines.ts';
import type { HeadLimits } from './head-limits.ts';
import { type MessageKind, MessageRefused } from './refusal.ts';

/**
 * Takes the body out of a stream of octets, in slices of the chunks that it is given and without copying:
 *
 * ```ts
 * let at = reader.position;
 * while (!body.complete && at < chunk.length) {
 *   const data = body.read(chunk, at);
 *   at = body.position;
 *   if (data !== undefined) relay(data);
 * }
 * // chunk[at..] belongs to the next message
 * ```
 */
export interface BodyDecoder {
  /** Index in the last chunk of the first octet that `read` did not take. */
  readonly position: number;
  /** Whether the message has ended; then `read` takes nothing more. */
  readonly complete: boolean;
  /** Trailer fields that may be passed on; all there are once the message is complete. */
  readonly trailers: Fields;

  /**
   * Reads on at `chunk[start]`: the next piece of the body, not empty, or undefined when only framing was read. May
   * leave octets of the body in the chunk for another call.
   * @throws {MessageRefused}
   */
  read(chunk: Buffer, start: number): Buffer | undefined;

  /**
   * Says that the connection has ended, which completes a body that ends with it.
   * @throws {MessageRefused} `truncated` when the message is not complete.
   */
  end(): void;
}

const NO_TRAILERS: Fields = [];

/** The decoder of a body; of a message without one, one that is complete from the start. */
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

/** A body of so many octets (RFC 9112 §6.2). */
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

/** An answer's body that ends with the connection (RFC 9112 §6.3, rule 8). Whether it is whole, nobody can know. */
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
