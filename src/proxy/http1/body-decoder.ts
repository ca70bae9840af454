import type { FieldLines } from './field-lines.ts';

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
  /** Trailer fields that may be passed on; complete once the message is. */
  readonly trailers: FieldLines;

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
