import type { DataPiece } from './frame.ts';

/** Frames that a stream accounts for beside its DATA: this many may be in flight as it is reset, and are earned as it ends. */
export const FRAMES_PER_STREAM = 4;

/** What the peer may still send on streams that this side has reset: it was allowed to, and did not know. */
export class RunOut {
  #bytes = 0;
  #frames = 0;

  /** This side resets a stream on which `allowedBytes` octets of DATA were still allowed. */
  reset(allowedBytes: number): void {
    this.#bytes += allowedBytes;
    this.#frames += FRAMES_PER_STREAM;
  }

  /** Whether DATA for a reset stream was in flight. A frame in pieces counts once, with its last piece. */
  data({ windowBytes, last }: DataPiece): boolean {
    const wasAllowed = windowBytes > 0 && windowBytes <= this.#bytes;
    this.#bytes = Math.max(0, this.#bytes - windowBytes);
    return wasAllowed || !last;
  }

  /** Whether another frame for a closed stream was in flight. */
  frame(): boolean {
    if (this.#frames === 0) return false;
    this.#frames--;
    return true;
  }
}
