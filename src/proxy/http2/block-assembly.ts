import { type ConnectionFault, connectionFault } from './fault.ts';
import type { HeadersFrame } from './frame.ts';

export interface BlockLimits {
  /**
   * Encoded octets of one field block, HEADERS and CONTINUATION together. More end the connection, because an undecoded
   * block leaves the tables out of step. Well above any block that is of use.
   */
  readonly blockBytes: number;
  /** CONTINUATION frames of one block, empty ones too (CVE-2024-27316 and its kin). */
  readonly continuations: number;
}

const FIRST_CAPACITY_BYTES = 1024;
const NOTHING = Buffer.alloc(0);

/** Puts a field block together from HEADERS and CONTINUATION frames. One that comes in one frame is not copied. */
export class BlockAssembly {
  /** The stream whose block is unfinished; 0 when there is none. */
  streamId = 0;

  readonly #limits: BlockLimits;
  #endStream = false;
  #selfDependent = false;
  #bytes = NOTHING;
  #length = 0;
  #frames = 0;

  constructor(limits: BlockLimits) {
    this.#limits = limits;
  }

  /** Octets of a block that is not whole. */
  get heldBytes(): number {
    return this.#bytes.length;
  }

  begin(streamId: number, endStream: boolean, selfDependent: boolean): void {
    this.streamId = streamId;
    this.#endStream = endStream;
    this.#selfDependent = selfDependent;
    this.#length = 0;
    this.#frames = 0;
  }

  /** Takes the fragment `bytes[start..end)`; gives the frame once its `last` has come. */
  append(
    bytes: Buffer,
    start: number,
    end: number,
    last: boolean,
  ): HeadersFrame | ConnectionFault | undefined {
    if (this.#frames++ > this.#limits.continuations) return connectionFault('continuation_flood');
    if (this.#length + end - start > this.#limits.blockBytes) return connectionFault('block_too_large');
    if (last && this.#frames === 1) return this.#finish(bytes.subarray(start, end));
    this.#hold(bytes, start, end);
    if (!last) return undefined;
    const block = this.#bytes.subarray(0, this.#length);
    this.#bytes = NOTHING;
    return this.#finish(block);
  }

  #finish(block: Buffer): HeadersFrame {
    const { streamId } = this;
    this.streamId = 0;
    return {
      kind: 'headers',
      streamId,
      block,
      endStream: this.#endStream,
      selfDependent: this.#selfDependent,
    };
  }

  #hold(bytes: Buffer, start: number, end: number): void {
    const length = this.#length + end - start;
    if (length > this.#bytes.length) {
      const capacity = Math.max(FIRST_CAPACITY_BYTES, this.#bytes.length * 2, length);
      const larger = Buffer.allocUnsafe(Math.min(capacity, this.#limits.blockBytes));
      this.#bytes.copy(larger, 0, 0, this.#length);
      this.#bytes = larger;
    }
    bytes.copy(this.#bytes, this.#length, start, end);
    this.#length = length;
  }
}
